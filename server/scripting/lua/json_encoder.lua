-- Encoding of JSON for scripts.

local complaints, settings = ...
local fail, refuse, behind = complaints.fail, complaints.refuse, complaints.behind
local type, next, select, rawget = type, next, select, rawget
local setmetatable, getmetatable = setmetatable, debug.getmetatable
local find, char, format, gsub = string.find, string.char, string.format, string.gsub
local concat, floor = table.concat, math.floor
local few, whole, chosen = settings.few, settings.whole, settings.chosen
local null = settings.null

local LEVEL, SLOTS, MAY_BE_DEEP = settings.LEVEL, settings.SLOTS, settings.MAY_BE_DEEP
local MOST_INTEGER = settings.MOST_INTEGER
local MOST_HEADS = 500 -- that are kept
local LONGEST_HEAD = 64
local MOST_BUFFER = 4096 -- bytes of text whose pieces are kept

local ESCAPES = { ['"'] = '\\"', ["\\"] = "\\\\", ["/"] = "\\/", ["\b"] = "\\b", ["\f"] = "\\f",
  ["\n"] = "\\n", ["\r"] = "\\r", ["\t"] = "\\t", ["\127"] = "\\u007f" }
for code = 0, 31 do
  local symbol = char(code)
  ESCAPES[symbol] = ESCAPES[symbol] or format("\\u%04x", code)
end
-- All that stands for itself in a string. Letters come first, because a set is tried in its order.
local CLEAN = "^[]-~0-[ !#-.\128-\255]*"
local DIRTY = "[^]-~0-[ !#-.\128-\255]"

-- What encodes with settings of its own: functions by the names that scripts call them by.
return function()
  local functions = {}
  local max_depth = 1000
  local most_depth = (max_depth + 1) * LEVEL
  local sparse_convert, sparse_ratio, sparse_safe = false, 2, 10
  local number_format, precision = "%.14g", 14
  local encodes_invalid = false -- or true, or "null"
  local keeps_buffer = true

  -- Pieces of text in a row, joined at the end. `at` is the place of the last one.

  local spellings = {} -- of small numbers
  local buffer = nil -- what the last call has written into, if that was little

  local function refuse_value(value, why)
    fail("Cannot serialise " .. type(value) .. ": " .. why)
  end

  local function quoted(text)
    local _, stop = find(text, CLEAN)
    if stop ~= #text then
      text = gsub(text, DIRTY, ESCAPES)
    end
    return '"' .. text .. '"'
  end

  local function spelled(number)
    if number - number ~= 0 then
      if encodes_invalid == "null" then
        return "null"
      elseif not encodes_invalid then
        refuse_value(number, "must not be NaN or Inf")
      elseif number ~= number then
        return "nan"
      end
    elseif number == 0 then
      return 1 / number < 0 and "-0" or "0"
    end
    local text = format(number_format, number)
    if number < 1000 and number > -1000 and floor(number) == number then
      spellings[number] = text
    end
    return text
  end

  -- Keys between what stands before and after them, as objects have them. They are made when they
  -- are asked for, and the short ones are kept.
  local function heads_between(before, after)
    local count = 0
    local function made(heads, key)
      local kind = type(key)
      if kind == "number" then
        return before .. '"' .. spelled(key) .. '"' .. after
      elseif kind ~= "string" then
        refuse_value(key, "table key must be a number or string")
      end
      local head = before .. quoted(key) .. after
      if #key <= LONGEST_HEAD then
        if count >= MOST_HEADS then
          for kept in next, heads do
            heads[kept] = nil
          end
          count = 0
        end
        heads[key] = head
        count = count + 1
      end
      return head
    end
    return setmetatable({}, { __index = made })
  end

  local first_heads, first_heads_of_text = heads_between("{", ":"), heads_between("{", ':"')
  local heads, heads_of_text = heads_between(",", ":"), heads_between(",", ':"')

  -- How many elements an array has, or -1 for what is none.
  local function size_of_mixed(value)
    local largest, count = 0, 0
    for key in next, value do
      if type(key) ~= "number" or key < 1 or floor(key) ~= key then
        return -1
      end
      if key > largest then
        largest = key <= MOST_INTEGER and key or -2147483648 -- what C makes of it
      end
      count = count + 1
    end
    if sparse_ratio > 0 and largest > count * sparse_ratio and largest > sparse_safe then
      if not sparse_convert then
        refuse_value(value, "excessively sparse array")
      end
      return -1
    end
    return largest
  end

  local function array_size(value)
    local count = 0
    for key in next, value do
      count = count + 1
      if key ~= count then
        return size_of_mixed(value)
      end
    end
    return count
  end

  local encode_table

  local function encode_value(out, at, value, depth)
    local kind = type(value)
    if kind == "string" then
      out[at + 1] = quoted(value)
    elseif kind == "number" then
      out[at + 1] = spellings[value] or spelled(value)
    elseif kind == "table" then
      return encode_table(out, at, value, depth)
    elseif kind == "boolean" then
      out[at + 1] = value and "true" or "false"
    elseif value == nil or value == null then
      out[at + 1] = "null"
    else
      refuse_value(value, "type not supported")
    end
    return at + 1
  end

  local function encode_array(out, at, value, size, depth)
    depth = depth + 1
    local before, before_text = "[", '["'
    for number = 1, size do
      local item = value[number]
      local kind = type(item)
      if kind == "string" then
        local _, stop = find(item, CLEAN)
        if stop ~= #item then
          item = gsub(item, DIRTY, ESCAPES)
        end
        out[at + 1] = before_text
        out[at + 2] = item
        at = at + 3
        out[at] = '"'
      elseif kind == "number" then
        out[at + 1] = before
        at = at + 2
        out[at] = spellings[item] or spelled(item)
      else
        out[at + 1] = before
        at = encode_value(out, at + 1, item, depth)
      end
      before, before_text = ",", ',"'
    end
    out[at + 1] = size > 0 and "]" or "[]"
    return at + 1
  end

  local function encode_object(out, at, value, depth)
    depth = depth + 2
    local plain, of_text = first_heads, first_heads_of_text
    for key, item in next, value do
      local kind = type(item)
      if kind == "string" then
        local head = of_text[key]
        local _, stop = find(item, CLEAN)
        if stop ~= #item then
          item = gsub(item, DIRTY, ESCAPES)
        end
        out[at + 1] = head
        out[at + 2] = item
        at = at + 3
        out[at] = '"'
      elseif kind == "number" then
        out[at + 1] = plain[key]
        at = at + 2
        out[at] = spellings[item] or spelled(item)
      else
        out[at + 1] = plain[key]
        at = encode_value(out, at + 1, item, depth)
      end
      plain, of_text = heads, heads_of_text
    end
    out[at + 1] = plain == first_heads and "{}" or "}"
    return at + 1
  end

  function encode_table(out, at, value, depth)
    depth = depth + LEVEL
    if depth >= most_depth or depth > MAY_BE_DEEP and depth % LEVEL > SLOTS - 3 then
      fail("Cannot serialise, excessive nesting (" .. floor(depth / LEVEL) .. ")")
    end
    value = behind[value] or value
    local meta = getmetatable(value)
    local size = meta and meta.__is_cjson_array and #value or nil
    local is_array = size ~= nil
    if not is_array then
      size = array_size(value)
    end
    if is_array or size > 0 then
      if meta then
        local plain = {} -- because an index of it might ask the metatable
        for number = 1, size do
          plain[number] = rawget(value, number)
        end
        value = plain
      end
      return encode_array(out, at, value, size, depth)
    end
    return encode_object(out, at, value, depth)
  end

  function functions.encode(...)
    if select("#", ...) ~= 1 then
      refuse(1, "expected 1 argument")
    end
    local out = buffer or {}
    buffer = nil
    local json = concat(out, "", 1, encode_value(out, 0, (...), 1))
    if #json <= MOST_BUFFER then
      buffer = out
    end
    return json
  end

  function functions.encode_max_depth(...)
    few(select("#", ...), 1)
    if ... ~= nil then
      max_depth = whole(1, ..., 1, MOST_INTEGER)
      most_depth = (max_depth + 1) * LEVEL
    end
    return max_depth
  end

  function functions.encode_number_precision(...)
    few(select("#", ...), 1)
    if ... ~= nil then
      precision = whole(1, ..., 1, 14)
      number_format = "%." .. precision .. "g"
      spellings = {}
    end
    return precision
  end

  function functions.encode_sparse_array(...)
    few(select("#", ...), 3)
    local convert, ratio, safe = ...
    sparse_convert = chosen(settings.OPTIONS, convert, sparse_convert)
    if ratio ~= nil then
      sparse_ratio = whole(2, ratio, 0, MOST_INTEGER)
    end
    if safe ~= nil then
      sparse_safe = whole(3, safe, 0, MOST_INTEGER)
    end
    return sparse_convert, sparse_ratio, sparse_safe
  end

  function functions.encode_invalid_numbers(...)
    few(select("#", ...), 1)
    encodes_invalid = chosen(settings.INVALID_OPTIONS, (...), encodes_invalid)
    return encodes_invalid
  end

  function functions.encode_keep_buffer(...)
    few(select("#", ...), 1)
    keeps_buffer = chosen(settings.OPTIONS, (...), keeps_buffer)
    return keeps_buffer
  end

  return functions
end
