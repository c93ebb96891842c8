return {tostring(loadstring(string.dump(function() return 1 end)))}
----
return {pcall(load, function() return nil end)}
----
local d = string.dump(function() return 1 end) local done return {type(load(function() if done then return nil end done = true return d end))}
----
local d = string.dump(function() return 1 end) local i = 0 return {type(load(function() i = i + 1 if i > #d then return nil end return d:sub(i, i) end))}
----
return {type(loadstring('\27Lua'))}
----
return {type(loadstring('\27Lua\81\0\1\4\8\4\8\0'))}
----
return getfenv(0)
----
return setfenv(1, {})
----
return debug.getregistry()
----
return debug
----
return package.loaded
----
return require('os')
----
return io.open('/etc/passwd')
----
return os.execute('id')
----
return os.getenv('PATH')
----
return os.exit()
----
return dofile('/etc/passwd')
----
return loadfile('/etc/passwd')
----
return print('x')
----
return module('x')
----
return newproxy(true)
----
return python
----
return python.eval('1')
----
return lupa
----
return as_attrgetter
----
local n = 0 for k in pairs(_G) do n = n + 1 end return {type(_G), tostring(_G._G == _G)}
----
getmetatable('').__index = function() return 'owned' end return ('x').foo
----
getmetatable('').__index = nil return 1
----
getmetatable('').__add = function() return 'owned' end return 'a' + 'b'
----
rawset(getmetatable(''), '__add', function() return 'x' end) return 1
----
setmetatable('', {}) return 1
----
local m = getmetatable('').__index m.upper = function() return 'owned' end return ('a'):upper()
----
rawset(getmetatable('').__index, 'upper', function() return 'owned' end) return ('a'):upper()
----
getmetatable(_G).__index = function() return 'owned' end return foo
----
rawset(getmetatable(_G), '__index', function() return 'owned' end) return foo
----
setmetatable(_G, {__index = function() return 'owned' end}) return foo
----
setmetatable(_G, nil) return 1
----
rawset(_G, 'foo', 1) return foo
----
_G.foo = 1 return 1
----
foo = 1 return 1
----
_G['redis'] = nil return 1
----
redis = nil return 1
----
redis.call = function() return 'owned' end return redis.call('ping')
----
rawset(redis, 'call', function() return 'owned' end) return redis.call('ping')
----
setmetatable(redis, {}) return 1
----
setmetatable(string, {__index = function() return 'owned' end}) return string.foo
----
string.rep = nil return string.rep('a', 3)
----
table.insert(string, 'x') return 1
----
table.insert(_G, 'x') return 1
----
table.remove(_G) return 1
----
table.sort(redis) return 1
----
table.setn(redis, 5) return 1
----
table.foreach(redis, function(k, v) redis[k] = 1 end) return 1
----
math.random = nil return 1
----
cjson.encode = function() return 'owned' end return cjson.encode({})
----
cmsgpack.pack = nil return 1
----
struct.pack = nil return 1
----
bit.band = nil return 1
----
coroutine.wrap = nil return 1
----
os.clock = nil return 1
----
return tostring(getmetatable(_G).__newindex)
----
return type(getmetatable(redis))
----
return type(getmetatable(cjson))
----
return type(getmetatable(cjson.null))
----
setmetatable(cjson.null, {}) return 1
----
cjson.null.x = 1 return 1
----
return cjson.null.x
----
return cjson.null()
----
return #cjson.null
----
return cjson.null .. 'x'
----
return redis.call.__globals__
----
return redis.call.__class__
----
return redis.call['__self__']
----
redis.call.x = 1 return 1
----
return getmetatable(redis.call)
----
for x in redis.call do return x end
----
return #redis.call
----
return redis.call + 1
----
return {pcall(redis.call)}
----
local ok, e = pcall(redis.call, 'nosuch') return {type(e), tostring(e)}
----
local ok, e = pcall(function() redis.call('nosuch') end) return {type(e), tostring(e)}
----
local e = redis.pcall('nosuch') return {type(e), tostring(e.err)}
----
local ok, e = xpcall(function() redis.call('nosuch') end, function(e) return {type(e), e} end) return {type(e), type(e[1]), type(e[2])}
----
local co = coroutine.create(function() redis.call('nosuch') end) local ok, e = coroutine.resume(co) return {type(e)}
----
local f = coroutine.wrap(function() redis.call('nosuch') end) local ok, e = pcall(f) return {type(e), tostring(e)}
----
local ok, e = pcall(string.gsub, 'x', 'x', function() redis.call('nosuch') end) return {type(e)}
----
local ok, e = pcall(table.sort, {1, 2}, function() redis.call('nosuch') end) return {type(e)}
----
local ok, e = pcall(setmetatable({}, {__call = function() redis.call('nosuch') end})) return {type(e)}
----
local ok, e = pcall(function() local t = setmetatable({}, {__index = function() redis.call('nosuch') end}) return t.x end) return {type(e)}
----
local ok, e = pcall(struct.pack, 'i17', 1) return {type(e), e}
----
local ok, e = xpcall(function() return struct.pack('i33', 1) end, function(e) return type(e) end) return {e}
----
local ok, e = xpcall(function() return bit.band({}) end, function(e) return type(e) end) return {e}
----
local ok, e = xpcall(function() return math.random({}) end, function(e) return type(e) end) return {e}
----
error({})
----
error({err = {}})
----
error({err = 5})
----
error({err = 'X y\r\nz'})
----
error(setmetatable({}, {__tostring = function() return 'owned' end}))
----
error(setmetatable({}, {__index = function() return 'owned' end}))
----
error(nil)
----
error(cjson.null)
----
error(5)
----
error(true)
----
error('x', 99)
----
return {err = 'My error'}
----
return {err = ''}
----
return {ok = 'a\r\nb'}
----
return {err = 'a\r\nb'}
----
setmetatable(KEYS, {__index = function() return 'owned' end}) return KEYS[5]
----
setmetatable(ARGV, {__newindex = function() end}) ARGV[9] = 1 return ARGV[9]
----
KEYS = {} return 1
----
ARGV = nil return 1
----
KEYS[1] = 'x' return KEYS
----
return string.format('%99999f', 1)
----
return string.format('%.99999f', 1)
----
return string.format('%99.99f', 1)
----
return #string.format('%99s', 'x')
----
return string.format('%s', {})
----
return string.format('%d', 'x')
----
return string.format('%n', 1)
----
return string.format('%', 1)
----
return string.format('%q', 'a\0\r\n"\\')
----
return string.format('%0000000000000000000000d', 1)
----
return #string.rep('x', -1)
----
return #string.rep('x', 0)
----
return #string.rep('', 1e6)
----
return {pcall(string.rep, 'x', 1e300)}
----
return table.concat({1, 2, {}}, ',')
----
return table.concat({1, 2, 3}, ',', 1, 5)
----
return table.concat({}, ',', 1, 2^31)
----
return {pcall(unpack, {}, 0, 1e9)}
----
return {pcall(unpack, {}, -2^31, 2^31 - 1)}
----
return {pcall(unpack, {}, 1, 2^31)}
----
return {pcall(unpack, {}, -1e300, 1e300)}
----
return {pcall(unpack, {}, 2^31 - 2, 2^31 - 1)}
----
return {pcall(unpack, {}, 0/0, 1)}
----
return {pcall(unpack, {}, 1, 0/0)}
----
return select('#', unpack({}, 1, 7000))
----
return {pcall(select, -5, 1)}
----
return {pcall(select, 2^31, 1)}
----
return {pcall(select, -2^31, 1)}
----
return {pcall(string.char, 256)}
----
return {pcall(string.byte, 'x', -2^31, 2^31)}
----
return {pcall(string.sub, 'x', -2^63, 2^63)}
----
return {pcall(string.byte, ('x'):rep(10000), 1, 10000)}
----
return {pcall(struct.pack, 'i2147483648', 1)}
----
return {pcall(struct.unpack, 'i', 'x', -2147483648)}
----
return {pcall(struct.unpack, '>I2c0', '\255\255abc')}
----
return {pcall(struct.unpack, 'c0', 'abc')}
----
return {pcall(struct.unpack, 'B', 'abc', 2^31)}
----
return {pcall(struct.unpack, 's', 'abc')}
----
return {pcall(struct.pack, ('b'):rep(5), 1)}
----
return {pcall(struct.size, 'i' .. ('9'):rep(20))}
----
return {pcall(struct.pack, '!' .. ('9'):rep(20) .. 'i', 1)}
----
return {pcall(struct.unpack, ('b'):rep(8001), ('x'):rep(8001))}
----
return {pcall(cmsgpack.unpack, '\221\255\255\255\255')}
----
return {pcall(cmsgpack.unpack, '\223\255\255\255\255')}
----
return {pcall(cmsgpack.unpack, ('\145'):rep(100))}
----
return {(pcall(cmsgpack.unpack, ('\145'):rep(100000)))}
----
return {pcall(cmsgpack.unpack_limit, '\1\2\3', 2^31, -2^31)}
----
return {pcall(cmsgpack.unpack_one, '\1', -1)}
----
return {pcall(cmsgpack.unpack_one, '\1', 99)}
----
local t = {} t[1] = t return {pcall(cmsgpack.pack, t)}
----
local t = {} t[1] = t return {pcall(cjson.encode, t)}
----
return {pcall(cjson.decode, ('['):rep(100000))}
----
return {pcall(cjson.decode, ('{"a":'):rep(100000))}
----
return {pcall(cjson.encode_max_depth, 2^31)}
----
return {pcall(cjson.encode_sparse_array, true, -1)}
----
return {pcall(bit.lshift, 2^53, 99)}
----
return {pcall(bit.tohex, 1, -2^31)}
----
return {pcall(bit.rol, 0/0, 1/0)}
----
return {pcall(loadstring, ('('):rep(300))}
----
local f, e = loadstring('return ' .. ('('):rep(300) .. '1' .. (')'):rep(300)) return {type(f), e}
----
local f, e = loadstring(('do '):rep(300) .. ('end '):rep(300)) return {type(f), e}
----
local f, e = loadstring('return ' .. ('{'):rep(300) .. ('}'):rep(300)) return {type(f), e}
----
local f, e = loadstring('return ' .. ('not '):rep(300) .. 'x') return {type(f), e}
----
local f, e = loadstring('return ' .. ('-'):rep(1) .. ('- '):rep(100000) .. 'x') return {type(f), e}
----
local f, e = loadstring('return ' .. ('"a"..'):rep(250) .. '"b"') return {type(f), e}
----
local f, e = loadstring('return ' .. ('"a"..'):rep(100000) .. '"b"') return {type(f), e}
----
local f, e = loadstring('return ' .. ('f('):rep(300) .. (')'):rep(300)) return {type(f), e}
----
local f, e = loadstring('x = ' .. ('function() return '):rep(300) .. '1' .. (' end'):rep(300)) return {type(f), e}
----
local t = {} for i = 1, 300 do t[i] = 'local a' .. i end local f, e = loadstring(table.concat(t, '\n')) return {type(f), e}
----
local t = {} for i = 1, 100 do t[i] = 'local a' .. i .. ' = ' .. i end t[101] = 'return function() return ' for i = 1, 100 do t[#t + 1] = 'a' .. i .. (i < 100 and ' + ' or '') end t[#t + 1] = ' end' local f, e = loadstring(table.concat(t, '\n')) return {type(f), e}
----
local f, e = loadstring(('a.'):rep(100000) .. 'a = 1') return {type(f), e}
----
local f, e = loadstring('if x then ' .. ('elseif x then '):rep(10000) .. 'end') return {type(f), e}
----
local f, e = loadstring('return "' .. ('\\0'):rep(1000) .. '"') return {type(f), #f()}
----
local f, e = loadstring('--[' .. ('='):rep(1000) .. '[') return {type(f), e}
----
local f, e = loadstring('return [' .. ('='):rep(100) .. '[x]' .. ('='):rep(100) .. ']') return {f()}
----
local f, e = loadstring('goto x') return {type(f), e}
----
local f, e = loadstring('x', ('n'):rep(1000)) return {type(f), e}
----
local f, e = loadstring('x', '=' .. ('n'):rep(1000)) return {type(f), e}
----
local f, e = loadstring('error("x")', '@user_script') return {pcall(f)}
----
for i = 1, 100 do loadstring(('x'):rep(i) .. ' = = 1', ('name'):rep(i)) end collectgarbage() return 1
----
for i = 1, 50 do local c = 'chunk' .. i local f = loadstring('return ' .. i, c) c = nil collectgarbage() if f() ~= i then return 0 end end return 1
----
return {pcall(string.find, ('('):rep(300), ('%('):rep(300))}
----
return {pcall(string.find, 'x', ('('):rep(40))}
----
return {pcall(string.match, 'x', '%')}
----
return {pcall(string.match, 'x', '[')}
----
return {pcall(string.match, 'x', '[%')}
----
return {pcall(string.match, 'x', '%b')}
----
return {pcall(string.match, 'x', '%f')}
----
return {pcall(string.match, 'xx', '(x)%9')}
----
return {pcall(string.gsub, 'x', 'x', '%9')}
----
return {pcall(string.gsub, 'x', '(', 'x')}
----
return {(pcall(string.match, ('a'):rep(2500), '.-b'))}
----
local function f() return f() + 1 end return {pcall(f)}
----
local function f() return pcall(f) end return {f()} and 1
----
local t = setmetatable({}, {}) getmetatable(t).__index = t return {pcall(function() return t.x end)}
----
local t = {} for i = 1, 200 do t = setmetatable({}, {__index = t}) end return {pcall(function() return t.x end)}
----
local t = setmetatable({}, {}) getmetatable(t).__newindex = t return {pcall(function() t.x = 1 end)}
----
local t = setmetatable({}, {__tostring = function() return 5 end}) return {pcall(tostring, t)}
----
local t = setmetatable({}, {__tostring = function(t) return tostring(t) end}) return {(pcall(tostring, t))}
----
local t = setmetatable({}, {__metatable = 'locked'}) return {getmetatable(t), (pcall(setmetatable, t, {}))}
----
local t = setmetatable({}, {__gc = function() redis.call('set', 'x', 'owned') end}) t = nil collectgarbage() return redis.call('get', 'x')
----
local t = setmetatable({}, {__mode = 'kv'}) t[1] = {} collectgarbage() return #t
----
local t = setmetatable({}, {__eq = function() return true end}) return {tostring(t == redis)}
----
local t = setmetatable({}, {__len = function() return 5 end}) return #t
----
local t = setmetatable({}, {__concat = function() return 'x' end}) return t .. redis
----
local co co = coroutine.create(function() return coroutine.resume(co) end) return {coroutine.resume(co)}
----
return {pcall(coroutine.yield, 1)}
----
coroutine.yield(1)
----
local co = coroutine.wrap(function() redis.call('set', KEYS[1], '5') coroutine.yield() return redis.call('get', KEYS[1]) end) co() return co()
----
local co = coroutine.create(function() end) coroutine.resume(co) return {coroutine.resume(co)}
----
local function deep(n) return coroutine.wrap(function() if n > 0 then return deep(n - 1) end return 'x' end)() end return deep(150)
----
local function deep(n) return coroutine.wrap(function() return deep(n + 1) end)() end return {(pcall(deep, 1))}
----
return {coroutine.running()}
----
return {pcall(coroutine.create, redis.call)} and 1
----
local co = coroutine.wrap(redis.call) return co('ping')
----
collectgarbage('stop') return 1
----
return {collectgarbage('setpause', 1), collectgarbage('setstepmul', 1)} and 1
----
return type(collectgarbage('count'))
----
return type(gcinfo())
----
local t = {} for i = 1, 10000 do t = {t} end return 1
----
return redis.sha1hex()
----
return redis.sha1hex(1, 2)
----
return redis.sha1hex({})
----
return redis.error_reply()
----
return redis.error_reply('a', 'b')
----
return redis.status_reply({})
----
return redis.log()
----
return redis.log(99, 'x')
----
return redis.setresp(4)
----
return redis.setresp('3')
----
return redis.set_repl(99)
----
return redis.set_repl('x')
----
return redis.call('eval', 'return 1', 0)
----
return redis.call('script', 'flush')
----
return redis.call('config', 'set', 'maxmemory', '1')
----
return redis.call('shutdown')
----
return redis.call('multi')
----
return redis.call('subscribe', 'x')
----
return redis.call('client', 'kill', 'x')
----
return redis.call('debug', 'segfault')
----
return redis.call('acl', 'whoami')
----
return redis.call('quit')
----
return redis.call('monitor')
----
return redis.call('watch', 'x')
----
return redis.call('exec')
----
return redis.call('blpop', 'x', 0)
----
return redis.call('hello', 3)
----
return redis.call('reset')
----
return redis.call('function', 'flush')
----
return redis.call('fcall', 'f', 0)
----
return redis.call('save')
----
return redis.call({})
----
return redis.call('get', {})
----
return redis.call('get', nil)
----
return redis.call(nil)
----
return redis.call('get', cjson.null)
----
return redis.call('get', redis.call)
----
return redis.call('get', true)
----
return redis.call('set', 'a', 1/0) and redis.call('get', 'a')
----
return redis.call('set', 'a', 0/0) and 1
----
return redis.call('mget', 2^62, 2^62 + 1024, -2^62, -2^62 - 1024, 2^63, -2^63, 2^64)
----
return {redis.call('echo', 2^62), redis.call('echo', -2^62), redis.call('echo', 2^62 + 1024)}
----
return {redis.call('echo', -2^63), redis.call('echo', 2^63), redis.call('echo', 2^53 + 1)}
----
return cjson.encode({redis.pcall('get', true), redis.pcall(), (redis.pcall('get'))})
----
return redis.call('')
----
return redis.call('\0')
----
return redis.call('get\0', 'x')
----
return redis.call('config|get', 'x')
----
return redis.register_function('f', function() end)
----
return {tostring(redis.call):match('^function')}
----
return {type(string.dump(function() end))}
----
return {pcall(string.dump, redis.call)}
----
return {pcall(string.dump, pcall)} and 1
----
return {pcall(rawequal, _G)}
----
return {tostring(rawequal(_G, _G))}
----
return {pcall(rawget, _G, 'nosuch')}
----
return {pcall(next, _G, 'nosuch')}
----
return {pcall(ipairs)}
----
local n = 0 for k, v in pairs(string) do n = n + 1 end return n
----
local names = {} for k in pairs(_G) do if k ~= '__redis__err__handler' then names[#names + 1] = k end end table.sort(names) return names
----
local names = {} for k in pairs(redis) do names[#names + 1] = k end table.sort(names) return names
----
local names = {} for k in next, math do names[#names + 1] = k end table.sort(names) return names
