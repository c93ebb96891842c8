-- What is read from MessagePack.
--
-- To call a function of C is what costs most here. So a byte is looked at together with the one
-- behind it, which says what comes next if the first one is a whole value. `slots` is how many
-- places on the stack a function written in C would have used.

local complaints, packing = ... -- packing of doubles is the server's
local fail, raise = complaints.fail, complaints.raise
local byte, sub, ldexp = string.byte, string.sub, math.ldexp
local unpack_double = packing.unpack_double

local MOST_SLOTS = 8000 -- that a function written in C has
local TWO_32 = 4294967296
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

local function read_text(text, at, size)
  local stop = at + size - 1
  if stop > #text then
    fail(MISSING)
  end
  return sub(text, at, stop), stop + 1
end

local function read_double(text, at)
  local a, b, c, d, e, f, g, h = byte(text, at, at + 7)
  if not h then
    fail(MISSING)
  end
  local low = b % 16
  local exponent = a % 128 * 16 + (b - low) / 16
  if exponent == 2047 then -- an infinity, or no number
    return unpack_double(sub(text, at, at + 7))
  end
  local fraction = (((((low * 256 + c) * 256 + d) * 256 + e) * 256 + f) * 256 + g) * 256 + h
  if exponent > 0 then
    fraction, exponent = fraction + 2 ^ 52, exponent - 1
  end
  local number = ldexp(fraction, exponent - 1074)
  return a < 128 and number or -number
end

local read_value

local function read_array(text, at, size, slots)
  local list = {}
  if slots >= MOST_SLOTS - 1 then
    fail("stack overflow (in function mp_decode_to_lua_array)")
  end
  local short = slots < MOST_SLOTS - 2 and 0xc0 or 0xa0 -- above the kinds of short strings
  local kind, following = byte(text, at, at + 1)
  for number = 1, size do
    if kind == 0xc0 and short == 0xc0 then -- nil
      at = at + 1
      if following then
        kind, following = following, nil
      else
        kind, following = byte(text, at, at + 1)
      end
    else
      if kind and kind >= 0xa0 and kind < short then
        list[number], at = read_text(text, at + 1, kind - 0xa0)
      else
        list[number], at = read_value(text, at, slots + 2)
      end
      kind, following = byte(text, at, at + 1)
    end
  end
  return list, at
end

local function read_map(text, at, size, slots)
  local map = {}
  local is_near_end = slots >= MOST_SLOTS - 2 -- of the stack, so that read_value has to look
  local short = is_near_end and 0xa0 or 0xc0 -- above the kinds of short strings
  local key, value, following
  local kind = byte(text, at)
  for _ = 1, size do
    if kind and kind >= 0xa0 and kind < short then -- as most keys are
      key = sub(text, at + 1, at + kind - 0xa0)
      at = at + kind - 0x9f
    else
      key, at = read_value(text, at, slots + 1)
    end
    kind, following = byte(text, at, at + 1) -- none if the key was cut off, too
    if not kind or is_near_end then
      value, at = read_value(text, at, slots + 2)
      kind = byte(text, at)
    elseif kind < 0x80 then
      value, at, kind = kind, at + 1, following
    elseif kind == 0xc0 then
      value, at, kind = nil, at + 1, following
    elseif kind == 0xc2 or kind == 0xc3 then
      value, at, kind = kind == 0xc3, at + 1, following
    else
      value, at = read_value(text, at, slots + 2)
      kind = byte(text, at)
    end
    if key == nil then
      raise("table index is nil")
    elseif key ~= key then
      raise("table index is NaN")
    end
    map[key] = value
  end
  return map, at
end

function read_value(text, at, slots)
  local kind, first, second = byte(text, at, at + 2)
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
  elseif kind == 0xde and second then
    return read_map(text, at + 2, first * 256 + second, slots)
  elseif kind == 0xcd and second then
    return first * 256 + second, at + 2
  elseif kind == 0xd9 and first then
    return read_text(text, at + 1, first)
  elseif kind == 0xcb then
    return read_double(text, at), at + 8
  elseif kind == 0xc0 then
    return nil, at
  elseif kind == 0xc2 or kind == 0xc3 then
    return kind == 0xc3, at
  elseif kind == 0xca then
    local part
    part, at = read_text(text, at, 4)
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

return read_value
