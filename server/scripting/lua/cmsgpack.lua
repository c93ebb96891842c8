-- MessagePack for scripts, as Redis has it.

local complaints, packing = ... -- packing of doubles is the server's
local fail, refuse = complaints.fail, complaints.refuse
local type, select, unpack, next, tonumber = type, select, unpack, next, tonumber
local byte, char, sub, floor, concat = string.byte, string.char, string.sub, math.floor, table.concat
local pack_double, unpack_double = packing.pack_double, packing.unpack_double

local MOST_DEPTH = 16
local MOST_SLOTS = 8000 -- that a function written in C has
local MANY_VALUES = 7900 -- that unpack does not give at once
local MOST_INTEGER = 2147483647
local MOST_KEYS = 500 -- that are kept
local MOST_BUFFER = 4096 -- bytes of data whose pieces are kept
local TWO_32 = 4294967296

-- Packing: pieces in a row, joined at the end. `at` is the place of the last one.

local SMALL = {} -- the numbers that are one byte, the heads of short strings, arrays and maps
for code = 0, 255 do
  SMALL[code] = char(code)
end

local function u32(number)
  local d = number % 256
  number = (number - d) / 256
  local c = number % 256
  number = (number - c) / 256
  local b = number % 256
  return char((number - b) / 256, b, c, d)
end

local function u64(number)
  local low = number % TWO_32
  return u32((number - low) / TWO_32 % TWO_32) .. u32(low)
end

local function pack_integer(number)
  if number >= 0 then
    if number < 128 then
      return SMALL[number]
    elseif number < 256 then
      return char(0xcc, number)
    elseif number < 65536 then
      local low = number % 256
      return char(0xcd, (number - low) / 256, low)
    elseif number < TWO_32 then
      return "\206" .. u32(number)
    end
    return "\207" .. u64(number)
  end
  if number >= -32 then
    return SMALL[256 + number]
  elseif number >= -128 then
    return char(0xd0, 256 + number)
  elseif number >= -32768 then
    local low = number % 256
    return char(0xd1, (number - low) / 256 + 256, low)
  elseif number >= -2147483648 then
    return "\210" .. u32(TWO_32 + number)
  end
  return "\211" .. u64(number)
end

local function pack_number(number)
  if number % 1 == 0 and number >= -2 ^ 63 and number < 2 ^ 63 then
    return pack_integer(number == 0 and 0 or number) -- there is no -0
  end
  return pack_double(number)
end

local function long_head(size, of_8, of_16, of_32)
  if of_8 and size < 256 then
    return char(of_8, size)
  elseif size < 65536 then
    return char(of_16, floor(size / 256), size % 256)
  end
  return char(of_32) .. u32(size)
end

-- How many elements an array has; nothing for what is none.
local function array_size(value)
  local count = 0
  local largest = 0
  for key in next, value do
    count = count + 1
    if key ~= count then -- which it is, one after the other, in nearly all arrays
      if type(key) ~= "number" or key <= 0 or floor(key) ~= key or key > MOST_INTEGER then
        return nil
      end
      if key > largest then
        largest = key
      end
    end
  end
  return largest <= count and count or nil
end

local packed_keys, keys_count = {}, 0 -- short strings that have been keys, with their heads

local function keep_key(key)
  if keys_count >= MOST_KEYS then
    packed_keys, keys_count = {}, 0
  end
  packed_keys[key] = SMALL[0xa0 + #key] .. key
  keys_count = keys_count + 1
end

local function pack_value(out, at, value, depth)
  local kind = type(value)
  if kind == "string" then
    local size = #value
    if size < 32 then
      out[at + 1] = SMALL[0xa0 + size]
    else
      out[at + 1] = long_head(size, 0xd9, 0xda, 0xdb)
    end
    out[at + 2] = value
    return at + 2
  elseif kind == "number" then
    out[at + 1] = value >= 0 and value < 128 and SMALL[value] or pack_number(value)
  elseif kind == "boolean" then
    out[at + 1] = value and "\195" or "\194"
  elseif kind == "table" and depth < MOST_DEPTH then
    depth = depth + 1
    local size = array_size(value)
    if size then
      out[at + 1] = size < 16 and SMALL[0x90 + size] or long_head(size, nil, 0xdc, 0xdd)
      at = at + 1
      for number = 1, size do
        at = pack_value(out, at, value[number], depth)
      end
      return at
    end
    local head = at + 1
    local count = 0
    at = head
    for key, item in next, value do
      count = count + 1
      local whole_key = packed_keys[key]
      if whole_key then
        at = at + 1
        out[at] = whole_key
      else
        at = pack_value(out, at, key, depth)
        if type(key) == "string" and #key < 32 then
          keep_key(key)
        end
      end
      local kind = type(item)
      if kind == "string" and #item < 32 then
        out[at + 1] = SMALL[0xa0 + #item]
        at = at + 2
        out[at] = item
      elseif kind == "number" then
        at = at + 1
        out[at] = item >= 0 and item < 128 and SMALL[item] or pack_number(item)
      else
        at = pack_value(out, at, item, depth)
      end
    end
    out[head] = count < 16 and SMALL[0x80 + count] or long_head(count, nil, 0xde, 0xdf)
    return at
  else
    out[at + 1] = "\192"
  end
  return at + 1
end

-- Unpacking. `slots` is how many places on the stack a function written in C would have used.

local MISSING = "Missing bytes in input."
local MANY = "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)"

local function read_u(text, at, size)
  local a, b, c, d, e, f, g, h = byte(text, at, at + size - 1)
  if size == 1 then
    return a or fail(MISSING)
  elseif size == 2 then
    return b and a * 256 + b or fail(MISSING)
  elseif size == 4 then
    return d and ((a * 256 + b) * 256 + c) * 256 + d or fail(MISSING)
  elseif not h then
    fail(MISSING)
  end
  -- One addition of two exact halves, so that it is rounded once.
  local high = ((a * 256 + b) * 256 + c) * 256 + d
  return high * TWO_32 + (((e * 256 + f) * 256 + g) * 256 + h)
end

local function read_i(text, at, size)
  if size == 8 then
    local first = byte(text, at)
    if not first or first < 128 then
      return read_u(text, at, 8)
    end
    read_u(text, at, 8) -- it is all there
    return (read_u(text, at, 4) - TWO_32) * TWO_32 + read_u(text, at + 4, 4)
  end
  local number = read_u(text, at, size)
  local limit = 256 ^ size
  return number >= limit / 2 and number - limit or number
end

local read_value

local function read_text(text, at, size)
  local stop = at + size - 1
  if stop > #text then
    fail(MISSING)
  end
  return sub(text, at, stop), stop + 1
end

local function read_array(text, at, size, slots)
  local list = {}
  if slots >= MOST_SLOTS - 1 then
    fail("stack overflow (in function mp_decode_to_lua_array)")
  end
  local kind
  for number = 1, size do
    kind = byte(text, at)
    if kind and kind >= 0xa0 and kind < 0xc0 and slots < MOST_SLOTS - 2 then -- a short string
      list[number], at = read_text(text, at + 1, kind - 0xa0)
    elseif kind == 0xc0 and slots < MOST_SLOTS - 2 then -- nil
      at = at + 1
    else
      list[number], at = read_value(text, at, slots + 2)
    end
  end
  return list, at
end

local function read_map(text, at, size, slots)
  local map = {}
  local key, value, kind
  for _ = 1, size do
    kind = byte(text, at)
    if kind and kind >= 0xa0 and kind < 0xc0 and slots < MOST_SLOTS - 2 then -- a short string, as most keys are
      key, at = read_text(text, at + 1, kind - 0xa0)
    else
      key, at = read_value(text, at, slots + 1)
    end
    kind = byte(text, at)
    if kind and kind < 0x80 and slots < MOST_SLOTS - 2 then
      value, at = kind, at + 1
    else
      value, at = read_value(text, at, slots + 2)
    end
    if key == nil then
      complaints.raise("table index is nil")
    elseif key ~= key then
      complaints.raise("table index is NaN")
    end
    map[key] = value
  end
  return map, at
end

function read_value(text, at, slots)
  local kind = byte(text, at)
  if not kind then
    fail(MISSING)
  elseif slots >= MOST_SLOTS then
    fail(MANY)
  end
  at = at + 1
  if kind < 0x80 then
    return kind, at
  elseif kind >= 0xa0 and kind < 0xc0 then
    return read_text(text, at, kind - 0xa0)
  elseif kind < 0x90 then
    return read_map(text, at, kind - 0x80, slots)
  elseif kind < 0xa0 then
    return read_array(text, at, kind - 0x90, slots)
  elseif kind >= 0xe0 then
    return kind - 256, at
  elseif kind == 0xc0 then
    return nil, at
  elseif kind == 0xc2 or kind == 0xc3 then
    return kind == 0xc3, at
  elseif kind == 0xca or kind == 0xcb then
    local part
    part, at = read_text(text, at, kind == 0xca and 4 or 8)
    return unpack_double(part), at
  elseif kind >= 0xcc and kind <= 0xce then
    local width = 2 ^ (kind - 0xcc)
    return read_u(text, at, width), at + width
  elseif kind == 0xcf then -- which Redis reads as if it had a sign
    return read_i(text, at, 8), at + 8
  elseif kind >= 0xd0 and kind <= 0xd3 then
    local width = 2 ^ (kind - 0xd0)
    return read_i(text, at, width), at + width
  elseif kind >= 0xd9 and kind <= 0xdb then
    local width = 2 ^ (kind - 0xd9)
    return read_text(text, at + width, read_u(text, at, width))
  elseif kind == 0xdc or kind == 0xdd then
    local width = kind == 0xdc and 2 or 4
    return read_array(text, at + width, read_u(text, at, width), slots)
  elseif kind == 0xde or kind == 0xdf then
    local width = kind == 0xde and 2 or 4
    return read_map(text, at + width, read_u(text, at, width), slots)
  end
  fail("Bad data format in input.")
end

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

local buffer -- what the last call has written into, if that was little

function cmsgpack.pack(...)
  local count = select("#", ...)
  if count == 0 then
    refuse(0, "MessagePack pack needs input.")
  end
  local out = buffer or {}
  buffer = nil
  local at = pack_value(out, 0, (...), 0)
  for number = 2, count do
    at = pack_value(out, at, (select(number, ...)), 0)
  end
  local data = concat(out, "", 1, at)
  if #data <= MOST_BUFFER then
    buffer = out
  end
  return data
end

function cmsgpack.unpack(...)
  local text = ...
  if text == nil and select("#", ...) > 0 then
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
