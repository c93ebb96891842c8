-- Makes the world that scripts see, and returns what the server calls to run one.
--
-- It is run once for each interpreter. Lua 5.1 has no tables that are read-only. So a script is
-- shown an empty table in the place of each one, and is given versions of those functions that
-- would tell the difference. Nothing of Python may be reached from a script, because every Python
-- object is a way out: errors that the server raises are exchanged for tables.

local server, libraries, keep_callers, complaints = ...
local expect, expect_any, refuse_argument, row_end =
  complaints.expect, complaints.expect_any, complaints.refuse, complaints.row_end

local as_function = python.as_function
local sethook, getinfo = debug.sethook, debug.getinfo
local error, type, select, tostring, tonumber = error, type, select, tostring, tonumber
local pcall, xpcall, unpack, setfenv, loadstring = pcall, xpcall, unpack, setfenv, loadstring
local setmetatable, getmetatable, rawget, rawset, next, pairs, ipairs =
  setmetatable, getmetatable, rawget, rawset, next, pairs, ipairs
local collectgarbage, coroutine, table = collectgarbage, coroutine, table
local concat, foreach, insert, match = table.concat, table.foreach, table.insert, string.match
local floor, max, min = math.floor, math.max, math.min

local MOST_VALUES = 8000 -- that a function takes and gives: its stack has room for no more
local HOOK_EVERY = 10000 -- instructions between two looks at the clock
local HOOK_LEAST = 100 -- as many, where each takes long
local THREADS_AT_MOST = 16 -- that are made between two looks at the clock
local BYTECODE = 27 -- what a compiled chunk begins with
local OURS = complaints.LIBRARIES
local READONLY = "Attempt to modify a readonly table"

-- The collector must never free the name of a chunk while the chunk is compiled: Lua 5.1 does not
-- hold on to it. Names of scripts are constants here, and loadstring holds on to the others.
local NAMES = { script = "@user_script", library = "@user_function" }

-- Read-only tables.

local behind = complaints.behind

local function refuse()
  error(READONLY, 2)
end

local function readonly(real)
  local shown = setmetatable({}, { __index = real, __newindex = refuse })
  behind[shown] = real
  return shown
end

-- Refuse to change a table that is read-only.
--
-- What scripts call most often checks its arguments by functions such as this one only where
-- something may be wrong.
local function check_writable(changed)
  if behind[changed] then
    error(READONLY, 0)
  end
end

-- Errors that the server raises are objects of Python.

local null = libraries.cjson.null

local end_script

local function exchanged(raised)
  if type(raised) == "userdata" and raised ~= null then
    local text, is_plain, is_counted, has_to_end = server.text_of(raised)
    if has_to_end then
      sethook(end_script, "l")
    end
    return is_plain and text or { err = text, ignore_error_stats_update = is_counted or nil }
  end
  return raised
end

-- An error without the place in this file, where Lua's own functions are called.
local function without_place(raised)
  return type(raised) == "string" and match(raised, "^sandbox%.lua:%d+: (.*)$") or nil
end

-- What a failed pcall gives, as Redis has it: an error that is a table becomes its text.
local function plainly(ok, ...)
  if ok then
    return true, ...
  end
  local raised = exchanged((...))
  if type(raised) ~= "table" then
    return false, without_place(raised) or raised
  end
  local text = raised.err
  if type(text) == "string" or type(text) == "number" then
    return false, text
  end
  return false, raised, text -- Redis leaves what it has looked for
end

local function resumed(ok, ...)
  if ok then
    return true, ...
  end
  return false, exchanged((...))
end

local function unwrapped(ok, ...)
  if ok then
    return ...
  end
  error((...), 0)
end

-- Time. A script that has to end is ended on whichever line it is, again and again, because it may
-- have a pcall around that line. The hook may outlive the script, in a coroutine.

local look_at_clock
local hook_every = HOOK_EVERY

function end_script()
  if not OURS[getinfo(2, "S").source] then
    server.end_script()
    sethook(look_at_clock, "", hook_every)
  end
end

-- An instruction may take very long, such as one that makes a long string of which Lua has many that
-- look alike to it.
function look_at_clock()
  local has_to_end, was_long = server.is_to_end()
  if has_to_end then
    sethook(end_script, "l")
    server.end_script()
  elseif was_long and hook_every > HOOK_LEAST then
    hook_every = max(HOOK_LEAST, floor(hook_every / 4))
    sethook(look_at_clock, "", hook_every)
  elseif hook_every < HOOK_EVERY and not was_long then
    hook_every = min(HOOK_EVERY, hook_every * 2)
    sethook(look_at_clock, "", hook_every)
  end
end

-- A coroutine counts its own instructions. So the clock is looked at, too, for every few that are
-- made: else a loop that makes them would go on for long without it.
local threads_made = 0

local function hooked(thread)
  threads_made = threads_made + 1
  if threads_made % THREADS_AT_MOST == 0 then
    look_at_clock()
  end
  sethook(thread, look_at_clock, "", hook_every)
  return thread
end

local function set_hook()
  sethook(look_at_clock, "", HOOK_EVERY)
end

-- What scripts are given.

local world -- their _G
local base = { os = { clock = os.clock }, string = {}, table = {}, math = math, coroutine = {} }

for _, name in ipairs({
  "assert", "error", "gcinfo", "ipairs", "rawequal", "select", "tonumber", "tostring", "type",
  "_VERSION",
}) do
  base[name] = _G[name]
end

function base.pcall(...)
  if select("#", ...) == 0 then
    return false, "attempt to call a boolean value" -- Redis calls what it keeps there
  end
  return plainly(pcall(...))
end

function base.xpcall(...)
  expect_any(2, select("#", ...))
  local run, handler = ...
  return xpcall(run, function(raised)
    return handler(exchanged(raised))
  end)
end

function base.pairs(...)
  local shown = ...
  local real = behind[shown]
  if not real then
    if type(shown) ~= "table" then
      expect("table", 1, select("#", ...), shown)
    end
    return pairs(shown)
  end
  return function(_, name)
    return next(real, name)
  end, shown, nil
end

function base.next(...)
  local shown, name = ...
  if type(shown) ~= "table" then
    expect("table", 1, select("#", ...), shown)
  end
  return next(behind[shown] or shown, name)
end

function base.rawget(...)
  local shown, name = ...
  if type(shown) ~= "table" or name == nil then
    expect("table", 1, select("#", ...), shown)
    expect_any(2, select("#", ...))
  end
  return rawget(behind[shown] or shown, name)
end

function base.rawset(...)
  local changed, name, value = ...
  if type(changed) ~= "table" or value == nil then
    local given = select("#", ...)
    expect("table", 1, given, changed)
    expect_any(2, given)
    expect_any(3, given)
  end
  check_writable(changed)
  return rawset(changed, name, value)
end

function base.setmetatable(...)
  local changed, metatable = ...
  if type(changed) ~= "table" or type(metatable) ~= "table" then
    local given = select("#", ...)
    expect("table", 1, given, changed)
    if given < 2 or metatable ~= nil then
      refuse_argument(2, "nil or table expected")
    end
  end
  check_writable(changed)
  return setmetatable(changed, metatable)
end

local of_strings -- what the metatable of strings and that of the world are shown as
local of_world

function base.getmetatable(...)
  local value = ...
  if value == nil then
    expect_any(1, select("#", ...))
  end
  if behind[value] then
    return value == world and of_world or nil
  end
  if type(value) == "string" then
    return of_strings
  end
  return type(value) == "table" and getmetatable(value) or nil
end

-- A number as a C function gets it that wants 32 bits.
local function as_int(value)
  local number = tonumber(value)
  if not number or number ~= number or number >= 2 ^ 63 or number < -2 ^ 63 then
    return number and 0
  end
  number = number < 0 and -floor(-number) or floor(number)
  return (number + 2 ^ 31) % 2 ^ 32 - 2 ^ 31
end

function base.unpack(...)
  local list, first, last = ...
  local given = select("#", ...)
  if type(list) ~= "table" then
    expect("table", 1, given, list)
  end
  -- Lua's own count of the values may overflow.
  local from = as_int(first == nil and 1 or first)
  local to = as_int(last == nil and #list or last)
  if not from or not to then
    local index = from and 3 or 2
    refuse_argument(index, "number expected, got " .. type((select(index, ...))))
  elseif to - from + given + 1 > MOST_VALUES then
    error("too many results to unpack", 2)
  elseif given == 1 then
    return unpack(list) -- its stack has room for two more
  elseif given == 2 then
    return unpack(list, from)
  end
  return unpack(list, from, to)
end

function base.collectgarbage(option, ...)
  if option == "stop" or option == "setpause" or option == "setstepmul" then
    return 0 -- the next script is to find it as it was
  end
  return collectgarbage(option, ...)
end

local ours = {} -- the names of functions of Lua that Redis has written in C

local function compile(source, name)
  if source:byte() == BYTECODE then
    source = " " .. source -- now it is text, and wrong
  end
  if OURS[name] then
    name = "=" .. name -- a chunk of that name would never be ended
  end
  local chunk, message = loadstring(source, name)
  if not chunk then
    return nil, message
  end
  local changed = keep_callers(chunk, source, ours)
  return setfenv(changed and loadstring(changed, name) or chunk, world)
end

local function check_text(index, given, text)
  if type(text) ~= "number" then
    expect("string", index, given, text)
  end
end

function base.loadstring(...)
  local source, name = ...
  local given = select("#", ...)
  check_text(1, given, source)
  source = tostring(source)
  if name ~= nil then
    check_text(2, given, name)
  end
  return compile(source, name and tostring(name) or source)
end

-- All that a function reads; nothing where it gives what is no text.
local function read_all(reader)
  local pieces = {}
  local piece = reader()
  while piece ~= nil and piece ~= "" do
    if type(piece) ~= "string" and type(piece) ~= "number" then
      return nil
    end
    pieces[#pieces + 1] = piece
    piece = reader()
  end
  return concat(pieces)
end

function base.load(...)
  local reader, name = ...
  local given = select("#", ...)
  if name ~= nil then
    check_text(2, given, name)
  end
  expect("function", 1, given, reader)
  local ok, source = pcall(read_all, reader)
  if not ok then
    return nil, exchanged(source)
  elseif not source then
    return nil, complaints.placed("reader function must return a string")
  end
  return compile(source, name and tostring(name) or "=(load)")
end

for name, value in pairs(coroutine) do
  base.coroutine[name] = value
end

local function check_runnable(run)
  if type(run) ~= "function" or getinfo(run, "S").what == "C" or OURS[getinfo(run, "S").source] then
    refuse_argument(1, "Lua function expected")
  end
end

function base.coroutine.create(run)
  check_runnable(run)
  return hooked(coroutine.create(run))
end

function base.coroutine.resume(...)
  if type((...)) ~= "thread" then
    refuse_argument(1, "coroutine expected")
  end
  return resumed(coroutine.resume(...))
end

function base.coroutine.wrap(run)
  check_runnable(run)
  local thread = hooked(coroutine.create(run))
  return function(...)
    return unwrapped(coroutine.resume(thread, ...))
  end
end

for name, value in pairs(string) do
  base.string[name] = server.patterns[name] or value
end
base.string.gfind = base.string.gmatch

for name, value in pairs(table) do
  base.table[name] = value
end

local function check_insert(...)
  local changed, place = ...
  local given = select("#", ...)
  expect("table", 1, given, changed)
  if given ~= 2 and given ~= 3 then
    complaints.fail("wrong number of arguments to 'insert'")
  elseif given == 3 and not tonumber(place) then
    refuse_argument(2, "number expected, got " .. type(place))
  end
  check_writable(changed)
end

function base.table.insert(...)
  local changed, place, value = ...
  if place == nil or value ~= nil or type(changed) ~= "table" or behind[changed] then
    check_insert(...)
  end
  return insert(...)
end

function base.table.foreach(...)
  local shown, visit = ...
  local given = select("#", ...)
  expect("table", 1, given, shown)
  expect("function", 2, given, visit)
  return foreach(behind[shown] or shown, visit)
end

-- What the server offers. A function of it stands where Redis has one that is written in C.

for name, library in pairs(libraries) do
  base[name] = library
end
for name, functions in pairs(server.native) do
  base[name] = base[name] or {}
  for function_name, value in pairs(functions) do
    base[name][function_name] = as_function(value)
  end
end

-- A number as Python is to get it. It would get 0 for -0, as for all that is a whole number.
local function signed(number)
  return number == 0 and 1 / number < 0 and "-0" or number
end

local pack = base.struct.pack

function base.struct.pack(...)
  local words, count = { ... }, select("#", ...)
  for index = 2, count do
    words[index] = signed(words[index])
  end
  return pack(unpack(words, 1, count))
end

local redis = {}
for name, value in pairs(server.constants) do
  redis[name] = value
end
for name, value in pairs(server.functions) do
  redis[name] = as_function(value)
end

if redis.breakpoint then -- scripts have it, and functions do not
  function redis.debug() end
end

local function or_table(ok, ...)
  if ok then
    return ...
  end
  return exchanged((...))
end

local sha1hex = redis.sha1hex

function redis.sha1hex(...)
  if select("#", ...) == 1 and type(...) == "number" then
    return sha1hex(tostring(...))
  end
  return sha1hex(...)
end

local call = redis.call

function redis.pcall(...)
  return or_table(pcall(call, ...))
end

local WRONG_TYPE = "ERR wrong number or type of arguments"

function redis.error_reply(text, ...)
  if type(text) ~= "string" or select("#", ...) > 0 then
    return { err = WRONG_TYPE }
  end
  return { err = server.error_line(text) }
end

function redis.status_reply(text, ...)
  if type(text) ~= "string" or select("#", ...) > 0 then
    return { err = WRONG_TYPE }
  end
  return { ok = text }
end

base.redis = redis

local function note_ours(functions)
  for name, value in pairs(functions) do
    if type(value) == "function" and getinfo(value, "S").what == "Lua" then
      ours[name] = true
    elseif type(value) == "table" and functions == base then
      note_ours(value)
    end
  end
end

note_ours(base)

local strict = { -- of a table in which everything is there that is asked for
  __index = function(_, name)
    if type(name) ~= "string" and type(name) ~= "number" then
      error("Second argument to luaProtectedTableError must be a string or number", 2)
    end
    local text = "Script attempted to access nonexistent global variable '%s'"
    error(text:format(tostring(name)), 2)
  end,
}

local globals = setmetatable({}, strict)
for name, value in pairs(base) do
  globals[name] = type(value) == "table" and readonly(value) or value
end
world = readonly(globals)
globals._G = world
getmetatable("").__index = base.string
of_strings = readonly({ __index = globals.string })
of_world = readonly({ __index = strict.__index })

-- A library of functions is loaded in a world where it can register functions, and little else.

local registered -- the functions of the library that is being loaded

local function refuse_function(text)
  error({ err = "ERR " .. text }, 0)
end

local function read_flags(flags)
  if type(flags) ~= "table" then
    refuse_function("flags argument to redis.register_function must be a table representing "
      .. "function flags")
  end
  local names = {}
  for number, name in ipairs(flags) do
    if type(name) ~= "string" then
      refuse_function("unknown flag given")
    end
    names[number] = name
  end
  return names
end

local function read_named(named)
  local name, callback, flags, description
  for key, value in pairs(named) do
    if type(key) ~= "string" and type(key) ~= "number" then
      refuse_function("named argument key given to redis.register_function is not a string")
    elseif key == "function_name" then
      if type(value) ~= "string" and type(value) ~= "number" then
        refuse_function("function_name argument given to redis.register_function must be a string")
      end
      name = tostring(value)
    elseif key == "description" then
      if type(value) ~= "string" and type(value) ~= "number" then
        refuse_function("description argument given to redis.register_function must be a string")
      end
      description = tostring(value)
    elseif key == "callback" then
      if type(value) ~= "function" then
        refuse_function("callback argument given to redis.register_function must be a function")
      end
      callback = value
    elseif key == "flags" then
      flags = read_flags(value)
    else
      refuse_function("unknown argument given to redis.register_function")
    end
  end
  if not name then
    refuse_function("redis.register_function must get a function name argument")
  elseif not callback then
    refuse_function("redis.register_function must get a callback argument")
  end
  return name, callback, flags, description
end

local function register_function(...)
  if not registered then
    refuse_function("redis.register_function can only be called on FUNCTION LOAD command")
  end
  local count = select("#", ...)
  if count < 1 or count > 2 then
    refuse_function("wrong number of arguments to redis.register_function")
  end
  local name, callback, flags, description = ...
  if count == 1 then
    if type(name) ~= "table" then
      refuse_function("calling redis.register_function with a single argument is only applicable "
        .. "to Lua table (representing named arguments).")
    end
    name, callback, flags, description = read_named(name)
  else
    if type(name) ~= "string" and type(name) ~= "number" then
      refuse_function("first argument to redis.register_function must be a string")
    elseif type(callback) ~= "function" then
      refuse_function("second argument to redis.register_function must be a function")
    end
    name, flags, description = tostring(name), nil, nil
  end
  local refusal = server.refusal_of_function(name, unpack(flags or {}))
  if refusal then
    refuse_function(refusal)
  end
  for _, function_ in ipairs(registered) do
    if function_.name == name then
      refuse_function("Function already exists in the library")
    end
  end
  registered[#registered + 1] =
    { name = name, callback = callback, flags = flags or {}, description = description }
end

local library_redis = setmetatable({ register_function = register_function }, strict)
for name, value in pairs(redis) do
  if name == "log" or name:find("^LOG_") or name:find("^REDIS_") then
    library_redis[name] = value
  end
end
local library_globals = setmetatable({ redis = readonly(library_redis) }, strict)

-- Values on their way to the server: a flat list. A string stands for itself, and before any other
-- value stands a number that says what it is; `server/scripting/values.py` reads it.

local NUMBER, NULL, YES, NO, LIST, STATUS, ERROR, DOUBLE, MAP, SET, BIG, VERBATIM, COUNTED =
  1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13
local MOST_DEPTH = 7995 -- as many as fit on the stack of a function of C
local TOO_DEEP = "ERR reached lua stack limit"

local write

local function write_items(out, at, value, depth)
  local head = at
  local size = 0
  at = at + 2
  local item = value[1]
  while item ~= nil do
    size = size + 1
    if type(item) == "string" then
      at = at + 1
      out[at] = item
    else
      at = write(out, at, item, depth)
    end
    item = value[size + 1]
  end
  out[head + 1], out[head + 2] = LIST, size
  return at
end

-- A table without its metatable, which is not asked.
local function bare(value)
  if getmetatable(value) == nil then
    return value
  end
  local copy = {}
  for name, item in next, value do
    copy[name] = item
  end
  return copy
end

local function write_table(out, at, value, depth)
  value = bare(value)
  local text = value.err
  if type(text) == "string" then
    out[at + 1] = value.ignore_error_stats_update and COUNTED or ERROR
    out[at + 2] = text
    return at + 2
  end
  text = value.ok
  if type(text) == "string" then
    out[at + 1], out[at + 2] = STATUS, text
    return at + 2
  end
  local number = value.double
  if type(number) == "number" then
    out[at + 1], out[at + 2] = DOUBLE, signed(number)
    return at + 2
  end
  local items = value.map
  if type(items) == "table" then
    local head = at
    local size = 0
    at = at + 2
    for name, item in next, behind[items] or items do
      at = write(out, write(out, at, name, depth), item, depth)
      size = size + 1
    end
    out[head + 1], out[head + 2] = MAP, size
    return at
  end
  items = value.set
  if type(items) == "table" then
    local head = at
    local size = 0
    at = at + 2
    for name in next, behind[items] or items do
      at = write(out, at, name, depth)
      size = size + 1
    end
    out[head + 1], out[head + 2] = SET, size
    return at
  end
  text = value.big_number
  if type(text) == "string" then
    out[at + 1], out[at + 2] = BIG, text
    return at + 2
  end
  items = value.verbatim_string
  if type(items) == "table" then
    local format, shown = rawget(items, "format"), rawget(items, "string")
    if type(format) == "string" and type(shown) == "string" then
      out[at + 1], out[at + 2], out[at + 3] = VERBATIM, format, shown
      return at + 3
    end
  end
  return write_items(out, at, value, depth)
end

function write(out, at, value, depth)
  local kind = type(value)
  if kind == "string" then
    out[at + 1] = value
    return at + 1
  elseif kind == "number" then
    out[at + 1], out[at + 2] = NUMBER, value
    return at + 2
  elseif kind == "table" then
    if depth >= MOST_DEPTH then
      out[at + 1], out[at + 2] = ERROR, TOO_DEEP
      return at + 2
    end
    return write_table(out, at, value, depth + 1)
  elseif kind == "boolean" then
    out[at + 1] = value and YES or NO
  else
    out[at + 1] = NULL
  end
  return at + 1
end

-- What a run leaves. A string and a number stand for themselves.
local function left(value)
  local kind = type(value)
  if kind == "string" or kind == "number" then
    return value
  end
  local out = { nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil } -- room for some
  local size = write(out, 0, value, 0)
  if size == 1 then
    return out[1], 0 -- one value alone would be taken for a number
  end
  if size < MOST_VALUES - 3 then
    return unpack(out, 1, size)
  end
  return out
end

-- Values on their way to a script, in the same form.

local FAILED = 0
local IS_KIND = {}
for kind = NUMBER, VERBATIM do
  IS_KIND[kind] = true
end

local read

local function read_items(parts, at, size)
  local list = {}
  for number = 1, size do
    list[number], at = read(parts, at)
  end
  return list, at
end

function read(parts, at)
  local kind = parts[at]
  if not IS_KIND[kind] then
    return kind, at + 1
  elseif kind == NUMBER then
    return parts[at + 1], at + 2
  elseif kind == LIST then
    return read_items(parts, at + 2, parts[at + 1])
  elseif kind == NULL then
    return nil, at + 1
  elseif kind == NO then
    return false, at + 1
  elseif kind == YES then
    return true, at + 1
  elseif kind == STATUS then
    return { ok = parts[at + 1] }, at + 2
  elseif kind == ERROR then
    return { err = parts[at + 1] }, at + 2
  elseif kind == DOUBLE then
    return { double = parts[at + 1] }, at + 2
  elseif kind == BIG then
    return { big_number = parts[at + 1] }, at + 2
  elseif kind == VERBATIM then
    return { verbatim_string = { format = parts[at + 1], string = parts[at + 2] } }, at + 3
  elseif kind == MAP then
    local size = parts[at + 1]
    local map, name = {}, nil
    at = at + 2
    for _ = 1, size do
      name, at = read(parts, at)
      map[name], at = read(parts, at)
    end
    return { map = map }, at
  end
  local size = parts[at + 1]
  local set, name = {}, nil
  at = at + 2
  for _ = 1, size do
    name, at = read(parts, at)
    set[name] = true
  end
  return { set = set }, at
end

local function value_of(...)
  return (read({ ... }, 1))
end

local function value_of_list(parts)
  return (read(parts, 1))
end

local function status(text)
  return { ok = text }
end

local function list(...)
  return { ... }
end

-- Append values to a table that has so many.
local function extend(made, size, ...)
  for number, value in ipairs({ ... }) do
    made[size + number] = value
  end
end

-- Running.

-- A failure, where it happened: in the innermost line of what is not ours. There is none if a
-- function of ours was called in place of the rest of the script, by `return f(...)`.
local function located(raised)
  local level = 2
  local info = getinfo(level, "Sl")
  while info and (info.currentline < 0 or OURS[info.source]) do
    level = row_end(level, info.source) + 1
    info = getinfo(level, "Sl")
  end
  local is_counted = false
  if type(raised) == "table" then
    is_counted = raised.ignore_error_stats_update and true or false
    raised = raised.err
    if type(raised) == "number" then
      raised = tostring(raised)
    elseif type(raised) ~= "string" then
      raised = "ERR unknown error"
    end
  elseif type(raised) ~= "userdata" or raised == null then
    local rest = without_place(raised)
    if rest and info then
      rest = info.short_src .. ":" .. info.currentline .. ": " .. rest
    end
    raised = "ERR " .. tostring(rest or raised)
  end
  return { raised, info and info.source, info and info.currentline, is_counted }
end

-- Where memory is short, or an error comes out of an error, there is a text and no more.
local function failed(value)
  if type(value) == "string" then
    return FAILED, "ERR " .. value, nil, nil, false
  end
  return FAILED, value[1], value[2], value[3], value[4]
end

local function ended(ok, value)
  if ok then
    return left(value)
  end
  return failed(value)
end

local function run_script(chunk, keys, ...)
  local words = { ... }
  if keys == 0 then
    globals.KEYS, globals.ARGV = {}, words
  else
    local count = #words
    globals.KEYS, globals.ARGV = words, count > keys and { select(keys + 1, ...) } or {}
    for number = keys + 1, count do
      words[number] = nil
    end
  end
  return ended(xpcall(chunk, located))
end

local function run_script_of_many(chunk, keys, arguments)
  globals.KEYS, globals.ARGV = keys, arguments
  return ended(xpcall(chunk, located))
end

local function run_function(callback, keys, arguments)
  return ended(xpcall(function()
    return callback(keys, arguments)
  end, located))
end

local LOADS_AT_MOST = 50 -- libraries that are loaded between two steps of the collector
local loads = 0

-- Load a library: its functions, or what went wrong.
local function load_library(chunk)
  loads = loads + 1
  if loads % LOADS_AT_MOST == 0 then
    collectgarbage("step", 1000)
  end
  registered = {}
  getmetatable(world).__index = library_globals
  local ok, failure = xpcall(chunk, located)
  getmetatable(world).__index = globals
  local found = registered
  registered = nil
  if ok then
    return found
  end
  return failed(failure)
end

set_hook()
local natural = _G -- scripts do not see it anyway
for name in pairs(natural) do
  natural[name] = nil
end
return {
  compile = function(source)
    return compile(source, NAMES.script)
  end,
  compile_library = function(source)
    return compile(source, NAMES.library)
  end,
  load_library = load_library,
  run_function = run_function,
  run = run_script,
  run_of_many = run_script_of_many,
  set_hook = set_hook,
  value_of = value_of,
  value_of_list = value_of_list,
  status = status,
  list = list,
  extend = extend,
}
