-- Decoding of JSON for scripts.

local complaints, settings = ...
local fail, refuse = complaints.fail, complaints.refuse
local type, tonumber, select, setmetatable = type, tonumber, select, setmetatable
local find, sub, byte, char, match = string.find, string.sub, string.byte, string.char,
  string.match
local concat, floor, huge = table.concat, math.floor, math.huge
local few, whole, chosen = settings.few, settings.whole, settings.chosen
local null = settings.null

local LEVEL, SLOTS, MAY_BE_DEEP = settings.LEVEL, settings.SLOTS, settings.MAY_BE_DEEP
local MOST_UNICODE = 1000 -- code points that are kept
local TOKENS = { ["{"] = "T_OBJ_BEGIN", ["}"] = "T_OBJ_END", ["["] = "T_ARR_BEGIN",
  ["]"] = "T_ARR_END", [":"] = "T_COLON", [","] = "T_COMMA" }
local UNESCAPED = { ['"'] = '"', ["\\"] = "\\", ["/"] = "/", b = "\b", f = "\f", n = "\n",
  r = "\r", t = "\t" }

-- UTF-8 of a code point.
local function utf8_of(code)
  if code < 0x80 then
    return char(code)
  elseif code < 0x800 then
    return char(0xC0 + floor(code / 64), 0x80 + code % 64)
  elseif code < 0x10000 then
    return char(0xE0 + floor(code / 4096), 0x80 + floor(code / 64) % 64, 0x80 + code % 64)
  end
  return char(0xF0 + floor(code / 262144), 0x80 + floor(code / 4096) % 64,
    0x80 + floor(code / 64) % 64, 0x80 + code % 64)
end

-- What C's strtod reads as a number at a place: the number and the place behind it.
local function read_number(text, at)
  local _, sign = find(text, "^[+-]?", at)
  local start = sign + 1
  local _, stop = find(text, "^0[xX]%x+%.?%x*", start)
  if not stop then
    _, stop = find(text, "^0[xX]%.%x+", start)
  end
  if stop then
    local _, exponent = find(text, "^[pP][+-]?%d+", stop + 1)
    stop = exponent or stop
  else
    _, stop = find(text, "^%d+%.?%d*", start)
    if not stop then
      _, stop = find(text, "^%.%d+", start)
    end
    if stop then
      local _, exponent = find(text, "^[eE][+-]?%d+", stop + 1)
      stop = exponent or stop
    end
  end
  if not stop then
    local _, short = find(text, "^[iI][nN][fF]", start)
    local _, long = find(text, "^[iI][nN][fF][iI][nN][iI][tT][yY]", start)
    stop = long or short
  end
  if not stop then
    _, stop = find(text, "^[nN][aA][nN]", start)
    if stop then
      local _, more = find(text, "^%([%w_]*%)", stop + 1)
      stop = more or stop
    end
  end
  if stop then
    return tonumber(sub(text, at, stop)), stop + 1
  end
end

-- Whether a number at a place is one that JSON does not have.
local function is_invalid_number(text, at)
  return find(text, "^%+", at) or find(text, "^-?0[xX%d]", at)
    or find(text, "^-?[iI][nN][fF]", at) or find(text, "^-?[nN][aA][nN]", at)
end

-- What decodes with settings of its own: functions by the names that scripts call them by.
return function()
  local functions = {}
  local max_depth = 1000
  local most_depth = (max_depth + 1) * LEVEL
  local decodes_invalid = true
  local marks_arrays = false

  -- `at` is a place in the text.

  local text -- that is being decoded
  local escape_at -- where the next backslash is, if that is not passed yet

  local function fail_at(at, expected, found)
    text = nil
    fail("Expected " .. expected .. " but found " .. found .. " at character " .. at)
  end

  local function skip(at)
    local _, stop = find(text, "^[ \t\r\n]*", at)
    return stop + 1
  end

  local unicode, unicode_count = {}, 0 -- what digits stand for

  -- What `\u` stands for, and how long it is.
  local function unicode_at(at)
    local known = unicode[sub(text, at + 2, at + 5)]
    if known then
      return known, 6
    end
    local digits = match(text, "^%x%x%x%x", at + 2)
    local code = digits and tonumber(digits, 16)
    if code and code >= 0xD800 and code < 0xE000 then
      local low = code < 0xDC00 and match(text, "^\\u(%x%x%x%x)", at + 6)
      low = low and tonumber(low, 16)
      if low and low >= 0xDC00 and low < 0xE000 then
        return utf8_of((code - 0xD800) * 1024 + low - 0xDC00 + 0x10000), 12
      end
      return nil
    end
    if not code then
      return nil
    end
    if unicode_count >= MOST_UNICODE then
      unicode, unicode_count = {}, 0
    end
    unicode[digits] = utf8_of(code)
    unicode_count = unicode_count + 1
    return unicode[digits], 6
  end

  -- A string from behind its opening quote on, and the place behind it. `stop` is the next quote.
  local function decode_escaped(at, stop, expected)
    local pieces, count = {}, 0
    while true do
      local escape = escape_at
      if escape < at then
        escape = find(text, "\\", at, true) or huge
        escape_at = escape
      end
      if not stop and escape == huge then
        fail_at(#text + 1, expected, "unexpected end of string")
      elseif stop and stop < escape then
        local rest = sub(text, at, stop - 1)
        if count == 0 then
          return rest, stop + 1
        end
        pieces[count + 1] = rest
        return concat(pieces, "", 1, count + 1), stop + 1
      end
      local letter = sub(text, escape + 1, escape + 1)
      local symbol, length = UNESCAPED[letter], 2
      if not symbol then
        if letter ~= "u" then
          fail_at(escape, expected, "invalid escape code")
        end
        symbol, length = unicode_at(escape)
        if not symbol then
          fail_at(escape, expected, "invalid unicode escape code")
        end
      end
      if escape > at then
        count = count + 1
        pieces[count] = sub(text, at, escape - 1)
      end
      count = count + 1
      pieces[count] = symbol
      at = escape + length
      if stop and stop < at then
        stop = find(text, '"', at, true)
      end
    end
  end

  local function decode_number(at, expected)
    if not decodes_invalid and is_invalid_number(text, at) then
      fail_at(at, expected, "invalid number")
    end
    local number, stop = read_number(text, at)
    if not number then
      fail_at(at, expected, "invalid number")
    end
    return number, stop
  end

  -- What stands at a place where something else was expected. It may be bad itself.
  local function token(at, expected)
    local symbol = sub(text, at, at)
    if symbol == "" then
      return "T_END"
    elseif TOKENS[symbol] then
      return TOKENS[symbol]
    elseif symbol == '"' then
      decode_escaped(at + 1, find(text, '"', at + 1, true), expected)
      return "T_STRING"
    elseif find(symbol, "[%d-]") then
      decode_number(at, expected)
      return "T_NUMBER"
    elseif find(text, "^true", at) or find(text, "^false", at) then
      return "T_BOOLEAN"
    elseif find(text, "^null", at) then
      return "T_NULL"
    elseif decodes_invalid and is_invalid_number(text, at) then
      decode_number(at, expected)
      return "T_NUMBER"
    end
    return "invalid token"
  end

  local function fail_token(at, expected)
    fail_at(at, expected, token(at, expected))
  end

  local function fail_depth(at, depth)
    text = nil
    fail("Found too many nested data structures (" .. floor(depth / LEVEL) .. ") at character " .. at)
  end

  local decode_table

  -- A value that begins with this symbol and is no string, and the place behind it.
  local function decode_value(at, symbol, depth)
    if symbol == 123 or symbol == 91 then
      return decode_table(at, symbol, depth)
    elseif symbol == 116 and sub(text, at, at + 3) == "true" then
      return true, at + 4
    elseif symbol == 102 and sub(text, at, at + 4) == "false" then
      return false, at + 5
    elseif symbol == 110 and sub(text, at, at + 3) == "null" then
      return null, at + 4
    end
    local digits, stop = match(text, "^(-?%d[%d.eE+-]*)()", at)
    local number = digits and tonumber(digits)
    if not number or not decodes_invalid or number == 0 and find(text, "^[xX]", stop) then
      if token(at, "value") ~= "T_NUMBER" then
        fail_token(at, "value")
      end
      return decode_number(at, "value")
    end
    return number, stop
  end

  -- A value of an array or an object, the place behind it, and what stands there but spaces. `closer`
  -- ends the array or object.
  local function decode_item(at, symbol, closer, depth)
    local value
    if symbol == 34 then
      local stop = find(text, '"', at + 1, true)
      if stop and stop < escape_at then
        value = sub(text, at + 1, stop - 1)
        at = stop + 1
      else
        value, at = decode_escaped(at + 1, stop, "value")
      end
    else
      local digits, stop
      if symbol and symbol < 58 and decodes_invalid then
        digits, stop = match(text, "^(-?%d+%.?%d*)()", at)
      end
      local after = digits and byte(text, stop)
      if after == 44 or after == closer then
        return digits * 1, stop, after
      end
      value, at = decode_value(at, symbol, depth)
    end
    symbol = byte(text, at)
    if symbol and symbol <= 32 then
      at = skip(at)
      symbol = byte(text, at)
    end
    return value, at, symbol
  end

  local function decode_array(at, depth)
    local list = marks_arrays and setmetatable({}, { __is_cjson_array = true }) or {}
    local symbol = byte(text, at)
    if symbol and symbol <= 32 then
      at = skip(at)
      symbol = byte(text, at)
    end
    if symbol == 93 then
      return list, at + 1
    end
    local size = 0
    depth = depth + 1
    while true do
      size = size + 1
      list[size], at, symbol = decode_item(at, symbol, 93, depth)
      if symbol == 93 then
        return list, at + 1
      elseif symbol ~= 44 then
        fail_token(at, "comma or array end")
      end
      at = at + 1
      symbol = byte(text, at)
      if symbol and symbol <= 32 then
        at = skip(at)
        symbol = byte(text, at)
      end
    end
  end

  -- A key from its opening quote on, and the place of its value.
  local function decode_key(at)
    if byte(text, at) ~= 34 then
      fail_token(at, "object key string")
    end
    local key
    key, at = decode_escaped(at + 1, find(text, '"', at + 1, true), "object key string")
    at = skip(at)
    if byte(text, at) ~= 58 then
      fail_token(at, "colon")
    end
    return key, skip(at + 1)
  end

  local function decode_object(at, depth)
    local object = {}
    local symbol = byte(text, at)
    if symbol and symbol <= 32 then
      at = skip(at)
      symbol = byte(text, at)
    end
    if symbol == 125 then
      return object, at + 1
    end
    depth = depth + 2
    while true do
      local key, behind = match(text, '^"([^"]*)":()', at)
      if not key or behind > escape_at then
        key, behind = decode_key(at)
      end
      at = behind
      symbol = byte(text, at)
      if symbol and symbol <= 32 then
        at = skip(at)
        symbol = byte(text, at)
      end
      object[key], at, symbol = decode_item(at, symbol, 125, depth)
      if symbol == 125 then
        return object, at + 1
      elseif symbol ~= 44 then
        fail_token(at, "comma or object end")
      end
      at = at + 1
      symbol = byte(text, at)
      if symbol and symbol <= 32 then
        at = skip(at)
      end
    end
  end

  function decode_table(at, symbol, depth)
    depth = depth + LEVEL
    if symbol == 91 then
      if depth >= most_depth or depth > MAY_BE_DEEP and depth % LEVEL > SLOTS - 2 then
        fail_depth(at, depth)
      end
      return decode_array(at + 1, depth)
    end
    if depth >= most_depth or depth > MAY_BE_DEEP and depth % LEVEL > SLOTS - 3 then
      fail_depth(at, depth)
    end
    return decode_object(at + 1, depth)
  end

  local function decode(source)
    local first, second = byte(source, 1, 2)
    if second and (first == 0 or second == 0) then
      fail("JSON parser does not support UTF-16 or UTF-32")
    end
    local zero = find(source, "\0", 1, true)
    text = zero and sub(source, 1, zero - 1) or source -- it ends there for C
    escape_at = find(text, "\\", 1, true) or huge
    local at = skip(1)
    local symbol = byte(text, at)
    local value
    if symbol == 34 then
      value, at = decode_escaped(at + 1, find(text, '"', at + 1, true), "value")
    else
      value, at = decode_value(at, symbol, 1)
    end
    at = skip(at)
    if at <= #text then
      fail_token(at, "the end")
    end
    text = nil
    return value
  end

  function functions.decode(...)
    if select("#", ...) ~= 1 then
      refuse(1, "expected 1 argument")
    end
    local source = ...
    if type(source) == "number" then
      source = "" .. source
    elseif type(source) ~= "string" then
      refuse(1, "string expected, got " .. type(source))
    end
    local value = decode(source) -- and not in place of the rest, which would hide the caller
    return value
  end

  function functions.decode_max_depth(...)
    few(select("#", ...), 1)
    if ... ~= nil then
      max_depth = whole(1, ..., 1, settings.MOST_INTEGER)
      most_depth = (max_depth + 1) * LEVEL
    end
    return max_depth
  end

  function functions.decode_invalid_numbers(...)
    few(select("#", ...), 1)
    decodes_invalid = chosen(settings.OPTIONS, (...), decodes_invalid)
    return decodes_invalid
  end

  function functions.decode_array_with_array_mt(...)
    few(select("#", ...), 1)
    marks_arrays = chosen(settings.OPTIONS, (...), marks_arrays)
    return marks_arrays
  end

  return functions
end
