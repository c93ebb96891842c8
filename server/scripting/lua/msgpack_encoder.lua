-- Values as MessagePack has them.

local packing = ... -- of doubles is the server's
local type, next, floor, char, concat, select = type, next, math.floor, string.char, table.concat, select
local pack_double = packing.pack_double

local MOST_DEPTH = 16
local MOST_INTEGER = 2147483647
local MOST_KEYS = 500 -- that are kept
local MOST_BUFFER = 4096 -- bytes of data whose pieces are kept
local TWO_32 = 4294967296

-- Pieces in a row, joined at the end. `at` is the place of the last one.

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

local buffer -- what the last call has written into, if that was little

-- All of these values, one behind the other.
return function(count, ...)
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
