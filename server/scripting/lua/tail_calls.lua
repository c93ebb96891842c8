-- Calls of our libraries by `return f(...)`.
--
-- Lua gives the place of a caller up when the caller ends with the call of a function of Lua, but
-- not if it ends with that of a function of C. Ours are functions of Lua where Redis has functions
-- of C, and their errors begin with that place. So such a call is made an ordinary one, in the
-- compiled script: that is one bit of an instruction.

local find, byte, sub, char, dump = string.find, string.byte, string.sub, string.char, string.dump
local floor, concat, ipairs = math.floor, table.concat, ipairs

-- Lua 5.1 for a machine with the lowest byte first: integers of 4 bytes, sizes of 8.
local HEADER = "\27Lua\81\0\1\4\8\4\8\0"
local MOVE, GETGLOBAL, GETTABLE, SELF, JMP, EQ, LE, TAILCALL = 0, 5, 6, 11, 22, 23, 25, 29
local NUMBER, BOOLEAN, STRING = 3, 1, 4

local function int_at(code, at)
  local a, b, c, d = byte(code, at, at + 3)
  return a + 256 * b + 65536 * c + 16777216 * d
end

-- The place behind a string.
local function behind_string(code, at)
  return at + 8 + int_at(code, at)
end

-- The name by which a function gets what it calls by the instruction at `at`.
local function name_of(code, first, at, constants)
  local register = floor(int_at(code, at) / 64) % 256
  for place = at - 4, first, -4 do
    local instruction = int_at(code, place)
    local operation = instruction % 64
    local is_test = operation >= EQ and operation <= LE
    if floor(instruction / 64) % 256 == register and operation ~= JMP and not is_test then
      if operation == MOVE then
        register = floor(instruction / 8388608) -- a local variable
      elseif operation == GETGLOBAL then
        return constants[floor(instruction / 16384)]
      elseif operation == GETTABLE or operation == SELF then
        return constants[floor(instruction / 16384) % 512 - 256]
      else
        return nil
      end
    end
  end
end

-- Note the calls to change in a function of a compiled chunk. Returns the place behind it.
local function look(code, at, names, found)
  at = behind_string(code, at) + 12
  local size = int_at(code, at)
  local first = at + 4
  local last = first + 4 * size - 4
  at = last + 4
  local constants = {}
  size = int_at(code, at)
  at = at + 4
  for number = 0, size - 1 do
    local kind = byte(code, at)
    at = at + 1
    if kind == NUMBER then
      at = at + 8
    elseif kind == BOOLEAN then
      at = at + 1
    elseif kind == STRING then
      local behind = behind_string(code, at)
      constants[number] = sub(code, at + 8, behind - 2)
      at = behind
    end
  end
  for place = first, last, 4 do
    if byte(code, place) % 64 == TAILCALL then
      local name = name_of(code, first, place, constants)
      if name and names[name] then
        found[#found + 1] = place
      end
    end
  end
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
  local found = {}
  look(code, #HEADER + 1, names, found)
  if #found == 0 then
    return nil
  end
  local pieces, from = {}, 1
  for _, place in ipairs(found) do
    pieces[#pieces + 1] = sub(code, from, place - 1)
    pieces[#pieces + 1] = char(byte(code, place) - 1)
    from = place + 1
  end
  pieces[#pieces + 1] = sub(code, from)
  return concat(pieces)
end
