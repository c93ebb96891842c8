-- How scripts change the settings of cjson, and what its parts have in common.

local complaints = ...
local refuse = complaints.refuse
local type, tonumber, match, floor = type, tonumber, string.match, math.floor

local settings = {}

local null = newproxy(true) -- what stands for null
getmetatable(null).__tostring = function()
  return "userdata: (nil)"
end
settings.null = null

-- The depth of a value counts two things at once: the tables around it, and what a function written
-- in C would have on its stack, which has room for so much.
settings.LEVEL = 65536
settings.SLOTS = 8000
settings.MAY_BE_DEEP = 2600 * settings.LEVEL -- where the stack may be full
settings.MOST_INTEGER = 2147483647

-- A setting is asked for by no argument and set by one.

function settings.whole(index, value, low, high)
  local number = tonumber(value)
  if not number then
    refuse(index, "number expected, got " .. type(value))
  end
  number = number < 0 and -floor(-number) or floor(number)
  if not (number >= -2 ^ 63 and number < 2 ^ 63) then
    number = 0
  end
  number = (number + 2 ^ 31) % 2 ^ 32 - 2 ^ 31 -- C has 32 bits for it
  if number < low or number > high then
    refuse(1, ("expected integer between %d and %d"):format(low, high))
  end
  return number
end

function settings.few(count, most)
  if count > most then
    refuse(most + 1, "found too many arguments")
  end
end

settings.OPTIONS = { off = false, on = true }
settings.INVALID_OPTIONS = { off = false, on = true, null = "null" }

function settings.chosen(options, value, present)
  if value == nil then
    return present
  elseif type(value) == "boolean" then
    return value
  elseif type(value) ~= "string" and type(value) ~= "number" then
    refuse(1, "string expected, got " .. type(value))
  end
  local name = match(value, "^%Z*") -- it ends at a NUL, as every string of C
  local option = options[name]
  if option == nil then
    refuse(1, "invalid option '" .. name .. "'")
  end
  return option
end

return settings
