-- MessagePack for scripts, as Redis has it.

local complaints, pack, read_value = ...
local fail, refuse = complaints.fail, complaints.refuse
local type, select, unpack, tonumber, floor = type, select, unpack, tonumber, math.floor

local MOST_SLOTS = 8000 -- that a function written in C has
local MANY_VALUES = 7900 -- that unpack does not give at once
local MOST_INTEGER = 2147483647

-- Up to `most` values from an offset on: how many, a list of them, and the offset behind them, which
-- is -1 at the end. No limit and no offset mean all, with no place kept for the offset.
local function read_some(text, most, offset)
  if type(text) == "number" then
    text = "" .. text
  elseif type(text) ~= "string" then
    refuse(1, "string expected, got " .. (text == nil and "no value" or type(text)))
  end
  if offset < 0 or most < 0 or offset > #text then
    local form = "Invalid request to unpack with offset of %d and limit of %d."
    if offset >= 0 and most >= 0 then
      form = "Start offset %d greater than input length %d."
    end
    fail(form:format((offset + 2 ^ 31) % 2 ^ 32 - 2 ^ 31, #text)) -- C has 32 bits for it here
  end
  local all = most == 0 and offset == 0
  if all then
    most = MOST_INTEGER
  end
  local values, count, at = {}, 0, offset + 1
  local size = #text
  while count < most and at <= size do
    count = count + 1
    values[count], at = read_value(text, at, count)
  end
  if not all and count >= MOST_SLOTS - 1 then
    fail("stack overflow (in function mp_unpack_full)")
  end
  return count, values, at > size and -1 or at - 1, all
end

-- A whole number among the arguments.
local function whole(index, count, value, default)
  if default and value == nil then
    return default
  end
  local number = tonumber(value)
  if not number then
    refuse(index, "number expected, got " .. (index > count and "no value" or type(value)))
  end
  if not (number >= -2 ^ 63 and number < 2 ^ 63) then
    return -2 ^ 63 -- what C makes of it
  end
  return number < 0 and -floor(-number) or floor(number)
end

local cmsgpack = {
  _NAME = "cmsgpack",
  _VERSION = "lua-cmsgpack 0.4.0",
  _COPYRIGHT = "Copyright (C) 2012, Salvatore Sanfilippo",
  _DESCRIPTION = "MessagePack C implementation for Lua",
}

function cmsgpack.pack(...)
  local count = select("#", ...)
  if count == 0 then
    refuse(0, "MessagePack pack needs input.")
  end
  return pack(count, ...)
end

function cmsgpack.unpack(...)
  local text = ...
  if type(text) == "string" and text ~= "" then
    local value, after = read_value(text, 1, 1)
    if after > #text then -- it was one value, as it is nearly always
      return value
    end
  elseif text == nil and select("#", ...) > 0 then
    refuse(1, "string expected, got nil")
  end
  local count, values = read_some(text, 0, 0)
  if count < MANY_VALUES then
    return unpack(values, 1, count)
  end
  return values[1], values[2], values[3], unpack(values, 4, count)
end

function cmsgpack.unpack_one(...)
  local text, offset = ...
  offset = whole(2, select("#", ...), offset, 0)
  if text == nil and select("#", ...) > 0 then
    refuse(1, "string expected, got nil")
  end
  local count, values, after = read_some(text, 1, offset)
  return after, unpack(values, 1, count)
end

function cmsgpack.unpack_limit(...)
  local text, most, offset = ...
  most = whole(2, select("#", ...), most)
  offset = whole(3, select("#", ...), offset, 0)
  if text == nil then
    refuse(1, "string expected, got nil")
  end
  local count, values, after, all = read_some(text, most, offset)
  if all then
    return unpack(values, 1, count)
  end
  return after, unpack(values, 1, count)
end

return cmsgpack
