-- The functions of `string` that take patterns, which refuse one that is too complex.
--
-- Lua 5.1 matches by functions of C that call themselves once for each repetition in the pattern,
-- and counts nothing: a pattern with a hundred thousand of them takes more stack than there is,
-- and the process ends. Later versions of Lua refuse such a pattern, in these words.

local complaints = ...
local type, pcall, error, select, tonumber = type, pcall, error, select, tonumber
local find, match, gmatch, gsub = string.find, string.match, string.gmatch, string.gsub

local MOST = 10000 -- repetitions; each takes some hundred bytes of the stack
local TOO_COMPLEX = "pattern too complex"

local function check(pattern)
  if select(2, gsub(pattern, "[?*+-]", "")) > MOST then
    complaints.fail(TOO_COMPLEX)
  end
end

-- Raise an error of a function of C as if the script had called it.
local function raise(raised)
  if type(raised) ~= "string" or raised == "not enough memory" then
    error(raised, 0)
  end
  local index, why = match(raised, "^bad argument #(%d+) to '[^']*' %((.*)%)$")
  if index then
    complaints.refuse(tonumber(index), why)
  end
  complaints.fail(raised)
end

-- `gsub` by a line of this file, which tells its own errors from those of what it calls.
local function replace(...)
  local text, count = gsub(...)
  return text, count
end

-- None of these ends with the call of a function of Lua, because the script's call would be
-- forgotten by that. What `find` and `match` give has no nil in it, unless that is all there is.

local function checked(run, may_be_plain)
  return function(...)
    local _, pattern, _, is_plain = ...
    if type(pattern) == "string" and #pattern > MOST and not (may_be_plain and is_plain) then
      check(pattern)
    end
    local ok, first, second, third, fourth = pcall(run, ...)
    if not ok then
      raise(first)
    elseif second == nil then
      return first
    elseif third == nil then
      return first, second
    elseif fourth == nil then
      return first, second, third
    end
    return run(...) -- there may be many, which a table would have to hold
  end
end

local function checked_gsub(...)
  local _, pattern, by = ...
  if type(pattern) == "string" and #pattern > MOST then
    check(pattern)
  end
  local ok, text, count
  if type(by) ~= "function" and type(by) ~= "table" then
    ok, text, count = pcall(gsub, ...)
    if not ok then
      raise(text)
    end
    return text, count
  end
  ok, text, count = pcall(replace, ...)
  if ok then
    return text, count
  end
  local own = type(text) == "string" and match(text, "^patterns%.lua:%d+: (.*)$")
  if own then
    raise(own)
  end
  error(text, 0)
end

return {
  find = checked(find, true),
  match = checked(match),
  gmatch = checked(gmatch),
  gsub = checked_gsub,
}
