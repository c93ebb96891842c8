-- Calls of our libraries by `return f(...)`.
--
-- Lua gives the place of a caller up when the caller ends with the call of a function of Lua, but
-- not if it ends with that of a function of C. Ours are functions of Lua where Redis has functions
-- of C, and their errors begin with that place. So such a call is made an ordinary one, in the
-- compiled script: that is one bit of an instruction.

local find, byte, sub, char, dump = string.find, string.byte, string.sub, string.char, string.dump
local floor, huge, concat, sort, ipairs = math.floor, math.huge, table.concat, table.sort, ipairs

-- Lua 5.1 for a machine with the lowest byte first: integers of 4 bytes, sizes of 8.
local HEADER = "\27Lua\81\0\1\4\8\4\8\0"
local MOVE, GETGLOBAL, GETTABLE, SELF, JMP, EQ, LE, TAILCALL = 0, 5, 6, 11, 22, 23, 25, 29
local TAILCALLS = { "\29", "]", "\157", "\221" } -- what such an instruction begins with
local NUMBER, BOOLEAN, STRING = 3, 1, 4
local CONSTANT_BYTES = { [NUMBER] = 9, [BOOLEAN] = 2, [0] = 1 } -- of those that are no strings

local function int_at(code, at)
  local a, b, c, d = byte(code, at, at + 3)
  return a + 256 * b + 65536 * c + 16777216 * d
end

-- The place behind a string.
local function behind_string(code, at)
  return at + 8 + int_at(code, at)
end

-- The place behind so many constants, the first of which is at `at`.
local function behind_constants(code, at, size)
  for _ = 1, size do
    local kind, a, b, c, d = byte(code, at, at + 4)
    if kind == STRING then
      at = at + 9 + a + 256 * b + 65536 * c + 16777216 * d
    else
      at = at + CONSTANT_BYTES[kind]
    end
  end
  return at
end

-- The number of the constant that names what the instruction at `at` calls, where one does.
local function constant_of(code, first, at)
  local register = floor(int_at(code, at) / 64) % 256
  for place = at - 4, first, -4 do
    local instruction = int_at(code, place)
    local operation = instruction % 64
    local is_test = operation >= EQ and operation <= LE
    if floor(instruction / 64) % 256 == register and operation ~= JMP and not is_test then
      if operation == MOVE then
        register = floor(instruction / 8388608) -- a local variable
      elseif operation == GETGLOBAL then
        return floor(instruction / 16384)
      elseif operation == GETTABLE or operation == SELF then
        local constant = floor(instruction / 16384) % 512 - 256
        return constant >= 0 and constant or nil -- else the name is in a register
      else
        return nil
      end
    end
  end
end

-- Note the calls to change among the instructions of a function, behind which its constants begin.
-- A function of C finds what may be one of them, perhaps in what comes later.
local function look_for_calls(code, first, behind, names, found)
  for kind, letter in ipairs(TAILCALLS) do
    local place = found.next_places[kind]
    if place < first then
      place = find(code, letter, first, true) or huge
    end
    while place < behind do
      local constant = (place - first) % 4 == 0 and constant_of(code, first, place)
      if constant then
        local at = behind_constants(code, behind + 4, constant)
        local name = byte(code, at) == STRING and sub(code, at + 9, behind_string(code, at + 1) - 2)
        if name and names[name] then
          found[#found + 1] = place
        end
      end
      place = find(code, letter, place + 1, true) or huge
    end
    found.next_places[kind] = place
  end
end

-- Note the calls to change in a function of a compiled chunk. Returns the place behind it.
local function look(code, at, names, found)
  at = behind_string(code, at) + 12
  local first = at + 4
  local behind = first + 4 * int_at(code, at)
  look_for_calls(code, first, behind, names, found)
  local size = int_at(code, behind)
  at = behind_constants(code, behind + 4, size)
  size = int_at(code, at)
  at = at + 4
  for _ = 1, size do
    at = look(code, at, names, found)
  end
  at = at + 4 + 4 * int_at(code, at) -- lines
  size = int_at(code, at)
  at = at + 4
  for _ = 1, size do -- locals
    at = behind_string(code, at) + 8
  end
  size = int_at(code, at)
  at = at + 4
  for _ = 1, size do -- names of upvalues
    at = behind_string(code, at)
  end
  return at
end

-- The compiled chunk with such calls made ordinary ones, or nothing where it has none.
return function(chunk, source, names)
  if not find(source, "return", 1, true) then
    return nil
  end
  local code = dump(chunk)
  if sub(code, 1, #HEADER) ~= HEADER then
    return nil
  end
  local found = { next_places = { 0, 0, 0, 0 } }
  look(code, #HEADER + 1, names, found)
  if #found == 0 then
    return nil
  end
  sort(found)
  local pieces, from = {}, 1
  for _, place in ipairs(found) do
    pieces[#pieces + 1] = sub(code, from, place - 1)
    pieces[#pieces + 1] = char(byte(code, place) - 1)
    from = place + 1
  end
  pieces[#pieces + 1] = sub(code, from)
  return concat(pieces)
end
