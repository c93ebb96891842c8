-- The functions of `string` that take patterns. None of them holds up the server for long.
--
-- Lua 5.1 matches by functions of C that cannot be interrupted, and count nothing: a pattern such as
-- `.-.-.-b` takes hours on a long text. So it is estimated first what a pattern may take at most. What
-- surely ends soon is left to Lua; the rest is matched by the server, which counts its steps.
--
-- Those functions of C call themselves once for each repetition in the pattern. One with a hundred
-- thousand of them takes more stack than there is, and the process ends. Later versions of Lua
-- refuse such a pattern, in these words.

local complaints, server, most_work = ...
local type, pcall, error, select, tonumber = type, pcall, error, select, tonumber
local find, match, gmatch, gsub, sub = string.find, string.match, string.gmatch, string.gsub, string.sub
local unpack, concat, floor = unpack, table.concat, math.floor

local MOST = 10000 -- repetitions; each takes some hundred bytes of the stack
local TOO_COMPLEX = "pattern too complex"
local MOST_KEPT = 1000000 -- bytes of a text
local MOST_PATTERNS = 1000 -- of which it is remembered what they may take

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

-- How much it may take

-- The repetitions in a pattern that may have to be tried again: an upper bound. Sets and letters
-- behind a `%` are taken out first, and a repetition at the end is never tried again. The search from
-- every place of the text is one more, unless the pattern is anchored.
local function repetitions(pattern)
  local _, special = gsub(pattern, "%%[b%d]", "")
  local bare = gsub(pattern, "%%.", "e")
  bare = gsub(bare, "%[%^?%]?[^%]]*%]", "e")
  bare = gsub(bare, "[*+?-]%)*$", "")
  local _, count = gsub(bare, "[*+?-]", "")
  return count + special + (sub(pattern, 1, 1) == "^" and 0 or 1)
end

local lengths, patterns = {}, 0 -- how long a text may be that is left to Lua, by pattern

local function learn(pattern)
  if #pattern > MOST and select(2, gsub(pattern, "[?*+-]", "")) > MOST then
    complaints.fail(TOO_COMPLEX)
  end
  if patterns == MOST_PATTERNS then
    lengths, patterns = {}, 0
  end
  local length = most_work ^ (1 / repetitions(pattern)) -- it is infinite where there are none
  if length > most_work / #pattern then
    length = most_work / #pattern
  end
  lengths[pattern] = length
  patterns = patterns + 1
  return length
end

-- Whether a text is so long that a pattern may take for ever on it. What is no string is left to
-- Lua, which refuses it or makes a short one of it.
local function is_long(text, pattern, is_plain)
  if type(text) ~= "string" or type(pattern) ~= "string" then
    return false
  elseif is_plain then
    return #text * #pattern > most_work
  end
  return #text > (lengths[pattern] or learn(pattern))
end

-- Matching by the server

local last = {} -- the last matcher: a script mostly looks for the next match in the same text

-- A function that looks for a pattern from a place on, counted from 0. It returns a list of the start,
-- the end and the same of each capture, or nil.
local function matcher(text, pattern, may_be_anchored)
  local is_anchored = may_be_anchored and sub(pattern, 1, 1) == "^" or false
  if is_anchored then
    pattern = sub(pattern, 2)
  end
  local search = last.search
  if text ~= last.text or pattern ~= last.pattern then
    search = server.matcher(text, pattern)
    last = #text <= MOST_KEPT and { text = text, pattern = pattern, search = search } or {}
  end
  return function(at)
    local found = { search(at, is_anchored) }
    if found[1] == false then
      complaints.fail(found[2])
    end
    return found[1] and found
  end, is_anchored
end

-- What a capture has; the first one has all of what was found where there is none.
local function capture(text, found, number)
  local from, to = found[2 * number + 1], found[2 * number + 2]
  if not from then
    if number > 1 then
      complaints.fail("invalid capture index")
    end
    from, to = found[1], found[2]
  end
  if to == -1 then
    return from + 1
  elseif to == -2 then
    complaints.fail("unfinished capture")
  end
  return sub(text, from + 1, to)
end

-- Put the captures behind `size` values of a list; how many there are then.
local function captures(text, found, list, size)
  local count = (#found - 2) / 2
  for number = 1, count do
    list[size + number] = capture(text, found, number)
  end
  return size + count
end

-- A list of the captures, or of all of what was found, and how many there are.
local function pieces(text, found)
  if #found == 2 then
    return { capture(text, found, 1) }, 1
  end
  local list = {}
  return list, captures(text, found, list, 0)
end

-- Have Lua refuse further arguments that are wrong.
local function check(run, ...)
  local ok, raised = pcall(run, "", ".", ...)
  if not ok then
    raise(raised)
  end
end

-- A place in a text that a script has named, counted from 0.
local function place(text, named)
  local at = tonumber(named) or 1
  at = at < 0 and -floor(-at) or floor(at)
  at = at < 0 and #text + at or at - 1
  return at < 0 and 0 or at > #text and #text or at
end

local function long_find(text, pattern, named, is_plain)
  check(find, named)
  local at = place(text, named)
  if is_plain or not find(match(pattern, "^[^%z]*"), "[%^$*+?.([%%-]") then
    local from = server.find(text, pattern, at)
    if from < 0 then
      return { nil }, 1
    end
    return { from + 1, from + #pattern }, 2
  end
  local found = matcher(text, pattern, true)(at)
  if not found then
    return { nil }, 1
  end
  local list = { found[1] + 1, found[2] }
  return list, captures(text, found, list, 2)
end

local function long_match(text, pattern, named)
  check(match, named)
  local found = matcher(text, pattern, true)(place(text, named))
  if not found then
    return { nil }, 1
  end
  return pieces(text, found)
end

local function long_gmatch(text, pattern)
  local search = matcher(text, pattern)
  local at = 0
  return function()
    local found = at <= #text and search(at)
    if not found then
      at = #text + 1
      return nil
    end
    at = found[2] > found[1] and found[2] or found[2] + 1
    local list, count = pieces(text, found)
    return unpack(list, 1, count)
  end
end

-- What stands for a match where the replacement is a string.
local function expanded(by, text, found)
  local put = gsub(by, "%%(.?)", function(letter)
    local number = match(letter, "^%d")
    if not number then
      return letter == "" and "\0" or letter
    elseif number == "0" then
      return sub(text, found[1] + 1, found[2])
    end
    return capture(text, found, tonumber(number))
  end)
  return put
end

local function long_gsub(text, pattern, by, most)
  check(gsub, by, most)
  most = most and tonumber(most) or #text + 1
  local search, is_anchored = matcher(text, pattern, true)
  local kind = type(by)
  local out, size, at, count = {}, 0, 0, 0 -- what stands before `at` is done
  local from = 0
  while count < most and from <= #text do
    local found = search(from)
    if not found then
      break
    end
    count = count + 1
    local put
    if kind == "function" then
      local list, captured = pieces(text, found)
      put = by(unpack(list, 1, captured))
    elseif kind == "table" then
      put = by[capture(text, found, 1)]
    else
      put = expanded(by, text, found)
    end
    if not put then
      put = sub(text, found[1] + 1, found[2])
    elseif type(put) ~= "string" and type(put) ~= "number" then
      complaints.fail("invalid replacement value (a " .. type(put) .. ")")
    end
    out[size + 1] = sub(text, at + 1, found[1])
    out[size + 2] = put
    size = size + 2
    at = found[2]
    from = at > found[1] and at or at + 1
    if is_anchored then
      break
    end
  end
  out[size + 1] = sub(text, at + 1)
  return concat(out), count
end

-- What scripts call
--
-- None of these ends with the call of a function of Lua, because the script's call would be
-- forgotten by that. What `find` and `match` give has no nil in it, unless that is all there is.

local function checked(run, long_run, may_be_plain)
  return function(...)
    local text, pattern, _, is_plain = ...
    if is_long(text, pattern, may_be_plain and is_plain) then
      local list, count = long_run(...)
      return unpack(list, 1, count)
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

local function checked_gmatch(...)
  local text, pattern = ...
  if is_long(text, pattern) then
    local next_match = long_gmatch(text, pattern)
    return next_match
  end
  local ok, next_match = pcall(gmatch, ...)
  if not ok then
    raise(next_match)
  end
  return next_match
end

-- `gsub` by a line of this file, which tells its own errors from those of what it calls.
local function replace(...)
  local text, count = gsub(...)
  return text, count
end

local function checked_gsub(...)
  local text, pattern, by = ...
  local ok, count
  if is_long(text, pattern) then
    text, count = long_gsub(...)
    return text, count
  end
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
  find = checked(find, long_find, true),
  match = checked(match, long_match),
  gmatch = checked_gmatch,
  gsub = checked_gsub,
}
