-- Errors of our libraries, worded and placed as if the libraries were written in C.
--
-- Lua puts the line that has called a C function before its error. Ours call one another, so that
-- line is found by looking for the first caller that is not ours.

local error, getinfo, type, floor = error, debug.getinfo, type, math.floor
local LIBRARIES = { ["@cjson.lua"] = true, ["@json_encoder.lua"] = true,
  ["@json_decoder.lua"] = true, ["@json_settings.lua"] = true, ["@cmsgpack.lua"] = true,
  ["@msgpack_encoder.lua"] = true, ["@msgpack_decoder.lua"] = true, ["@patterns.lua"] = true,
  ["@sandbox.lua"] = true, ["@complaints.lua"] = true }

-- Whose functions call themselves for each level of a value. They call no script meanwhile, so where
-- one of them is found farther out, all between is of the same file.
local DEEP = { ["@json_encoder.lua"] = true, ["@json_decoder.lua"] = true,
  ["@msgpack_decoder.lua"] = true }

-- The outermost level of those in a row that are of one deep file: this one, where it is of none.
--
-- Lua takes as long to look at a level as it is deep. So most of the row is passed over.
local function row_end(level, source)
  local step, grows = DEEP[source] and 1 or 0, true
  while step >= 1 do
    local probe = level + step
    local info = getinfo(probe + 1, "S")
    while info and info.what == "tail" do
      probe = probe + 1
      info = getinfo(probe + 1, "S")
    end
    if info and info.source == source then
      level = probe
    else
      grows = false
    end
    step = grows and step * 2 or floor(step / 2)
  end
  return level
end

-- What stands before the error of a function that is called at this level.
local function place_of(level)
  local info = getinfo(level + 1, "Sl")
  if info and info.currentline > 0 then
    return info.short_src .. ":" .. info.currentline .. ": "
  end
  return ""
end

local function argument_error(level, index, why)
  local info = getinfo(level, "n")
  local name = info.name or "?"
  if info.namewhat == "method" then
    index = index - 1
    if index == 0 then
      return "calling '" .. name .. "' on bad self (" .. why .. ")"
    end
  end
  return "bad argument #" .. index .. " to '" .. name .. "' (" .. why .. ")"
end

-- The level of the library's function that a script has called: the last of ours in a row. Where
-- one of ours has called another in place of the rest of itself, there is a level without a source.
local function entry()
  local level = 2
  local last = level
  local info = getinfo(level, "S")
  while info and (LIBRARIES[info.source] or info.what == "tail") do
    if info.what ~= "tail" then
      level = row_end(level, info.source)
      last = level
    end
    level = level + 1
    info = getinfo(level, "S")
  end
  return last - 1
end

local complaints = { LIBRARIES = LIBRARIES, row_end = row_end }

-- The real table of each that is shown in its place, because scripts may not change it.
complaints.behind = setmetatable({}, { __mode = "k" })

-- An error from anywhere in a library, with the line that has called the library.
function complaints.placed(text)
  return place_of(entry() + 1) .. text
end

-- Raise it.
function complaints.fail(text)
  error(complaints.placed(text), 0)
end

-- Raise an error of Lua itself, which stands for itself where C has called Lua.
function complaints.raise(text)
  error(text, 0)
end

-- Raise an error about an argument.
function complaints.refuse(index, why)
  local level = entry()
  error(place_of(level + 1) .. argument_error(level + 1, index, why), 0)
end

-- Refuse an argument that is not of this kind, where `given` says how many there are.
function complaints.expect(kind, index, given, value)
  if type(value) ~= kind then
    local got = index > given and "no value" or type(value)
    complaints.refuse(index, kind .. " expected, got " .. got)
  end
end

-- Refuse an argument that is not there.
function complaints.expect_any(index, given)
  if index > given then
    complaints.refuse(index, "value expected")
  end
end

-- The text for an error of a function of Python, which is what calls this. It is about an argument
-- if there is an index.
function complaints.native(index, why)
  local caller = getinfo(3, "S")
  local level = caller and LIBRARIES[caller.source] and 4 or 3 -- a function of ours is between
  return place_of(level) .. (index > 0 and argument_error(level, index, why) or why)
end

return complaints
