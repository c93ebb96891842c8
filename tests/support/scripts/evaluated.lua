return 1
----
return {1,2,{3,'x'},false,true,nil,4}
----
return redis.call('set',KEYS[1],ARGV[1])
----
return redis.call('get','a')
----
return redis.call('nosuch')
----
error('boom')
----
foo=1
----
return foo
----
return redis.pcall('x')
----
local a,b=pcall(redis.call,'nosuch') return {type(b), tostring(b)}
----
local b=redis.pcall('nosuch') local t={} for k,v in pairs(b) do t[#t+1]=tostring(k)..'='..tostring(v) end table.sort(t) return t
----
local a,b=pcall(function() return redis.call('get') end) return {type(b),tostring(b)}
----
local a,b=pcall(error,{err='X y'}) return {type(b),tostring(b)}
----
local a,b=pcall(error,{errr='X y'}) return {type(b)}
----
return redis.call('incr','a','b')
----
return redis.error_reply('x')
----
return redis.error_reply('-x y')
----
return redis.error_reply('-x')
----
return redis.error_reply('x y')
----
return redis.error_reply('')
----
return redis.error_reply('-')
----
return {err='x y z'}
----
return {err='-x y z'}
----
return {err=''}
----
error({err='TAB boom'})
----
error({err='boom'})
----
error({err='-TAB boom'})
----
error()
----
error(5)
----
error({})
----
error(nil)
----
error('x',0)
----
error('x',2)
----
error({err='X\r\ny'})
----
setmetatable(_G,{})
----
return setmetatable(_G,{})
----
return type(getmetatable(_G))
----
getmetatable(_G).__index=1
----
local t={} for k,v in pairs(redis) do t[#t+1]=k..type(v) end table.sort(t) return t
----
local t={} for k,v in pairs(cjson) do t[#t+1]=k..':'..type(v) end table.sort(t) return t
----
local t={} for k,v in pairs(cmsgpack) do t[#t+1]=k..':'..type(v) end table.sort(t) return t
----
local t={} for k,v in pairs(struct) do t[#t+1]=k..':'..type(v) end table.sort(t) return t
----
local t={} for k,v in pairs(bit) do t[#t+1]=k..':'..type(v) end table.sort(t) return t
----
local t={} for k,v in pairs(string) do t[#t+1]=k..':'..type(v) end table.sort(t) return t
----
local t={} for k,v in pairs(table) do t[#t+1]=k..':'..type(v) end table.sort(t) return t
----
local t={} for k,v in pairs(math) do t[#t+1]=k..':'..type(v) end table.sort(t) return t
----
local t={} for k,v in pairs(coroutine) do t[#t+1]=k..':'..type(v) end table.sort(t) return t
----
local t={} for k,v in pairs(os) do t[#t+1]=k..':'..type(v) end table.sort(t) return t
----
return tostring(getmetatable('').__index==string)
----
redis.setresp(3) return {true,false,1,{double=3.5},{map={a=1}},{set={a=true}},{big_number='123'},{verbatim_string={format='txt',string='x'}}}
----
return {true,false,1,{double=3.5},{map={a=1}},{set={a=true}},{big_number='123'},{verbatim_string={format='txt',string='x'}}}
----
return true
----
return false
----
return nil
----
redis.setresp(3) return true
----
redis.setresp(3) return false
----
local t={} t[1]=t return 1
----
string.gsub=1
----
KEYS=1
----
rawset(_G,'a',1)
----
getmetatable('').__index=1
----
return rawget(_G,'nosuch')
----
return tostring(rawget(_G,'redis')==redis)
----
redis.call()
----
redis.call({})
----
redis.call('eval')
----
redis.call('eval','return 1',0)
----
redis.call('subscribe','a')
----
redis.log(1)
----
redis.log('a','b')
----
redis.log(9,'b')
----
redis.log({},'b')
----
redis.sha1hex()
----
return redis.sha1hex('abc')
----
return redis.sha1hex(12)
----
redis.setresp(4)
----
redis.setresp()
----
return redis.status_reply('ok')
----
return redis.status_reply()
----
return redis.status_reply('a\r\nb')
----
return redis.call
----
return {1,redis.call,2}
----
return tostring(cjson.null)
----
return {3.99,-3.99,1/0,-1/0,0/0,1e300,2^53,2^62,2^63,-2^63,1e18,9007199254740993}
----
x
----
redis.breakpoint()
----
return {redis.breakpoint(), redis.replicate_commands(), redis.set_repl(3)}
----
redis.set_repl(9)
----
redis.set_repl()
----
redis.debug(1)
----
return redis.acl_check_cmd('get','a')
----
return redis.acl_check_cmd('nosuch','a')
----
return redis.acl_check_cmd()
----
redis.call('set','f',1.5) return redis.call('get','f')
----
redis.call('set','f',1e20) return redis.call('get','f')
----
redis.call('set','f',1/3) return redis.call('get','f')
----
redis.call('set','f',-0.0) return redis.call('get','f')
----
redis.call('set','f',123456789012345678) return redis.call('get','f')
----
redis.call('set','f',1e17) return redis.call('get','f')
----
redis.call('set','f',1/0) return redis.call('get','f')
----
return redis.call('set','a',true)
----
return tostring(collectgarbage('stop'))
----
return loadstring('return 1')()
----
return tostring(loadstring(string.dump(function() return 1 end)))
----
local a,b=loadstring('x') return b
----
return load(function() return nil end)
----
return math.random(0)
----
return math.random(1,2,3)
----
return math.random('x')
----
return math.random({})
----
return math.random(5,1)
----
math.randomseed(5) return {tostring(math.random()),math.random(100),math.random(5,10)}
----
return string.format('%s', nil)
----
return ('x'):nosuch()
----
local t = nil; return t.x
----
return 1 < 'x'
----
return {double=3}
----
return {ok='fine', err='x'}
----
return {map={a=1}}
----
return {format='x'}
----
return {1,{ok='fine'},{err='bad x'}}
----
return {err=5}
----
return {ok=5}
----
return {ok={}}
----
return {double='3'}
----
return {big_number=12}
----
return {set={1,2}}
----
return {verbatim_string={format='t',string='x'}}
----
return {verbatim_string={format='text',string='x'}}
----
redis.call('hset','h','a',1) return redis.call('hgetall','h')
----
redis.setresp(3) local r=redis.call('hgetall','h') return {type(r.map), r.map.a}
----
redis.setresp(3) return redis.call('hgetall','h')
----
redis.call('sadd','s','m') redis.setresp(3) local r=redis.call('smembers','s') return {type(r.set), tostring(r.set.m)}
----
redis.call('zadd','z',1.5,'m') redis.setresp(3) local r=redis.call('zscore','z','m') return {type(r), tostring(r.double)}
----
return redis.call('zscore','z','m')
----
redis.setresp(3) return redis.call('zrange','z',0,-1,'withscores')
----
return redis.call('zrange','z',0,-1,'withscores')
----
redis.setresp(3) return tostring(redis.call('get','nosuch'))
----
return tostring(redis.call('get','nosuch'))
----
return redis.call('mget','nosuch','f')
----
local r = redis.call('mget','nosuch','f') return {tostring(r[1]),r[2]}
----
redis.call('set','str','x') return redis.call('incr','str')
----
return redis.call('lpush','str','x')
----
local r=redis.pcall('lpush','str','x') return r.err
----
return redis.pcall('lpush','str','x')
----
redis.call('select',5) redis.call('set','in5','x') return redis.call('get','in5')
----
return redis.call('get','in5')
----
return {unpack({1,2,3})}
----
return {unpack({1,2,3},2)}
----
return {unpack({},1,8001)}
----
return #{unpack({},1,7000)}
----
return {unpack({}, 0, 2147483647)}
----
local c=coroutine.create(function() redis.call('nosuch') end) local a,b=coroutine.resume(c) return {tostring(a),type(b)}
----
local c=coroutine.wrap(function(a) local b=coroutine.yield(a+1) return b*2 end) return {c(1),c(5)}
----
return {xpcall(function() error('x') end, function(e) return e..'!' end)}
----
return {xpcall(function() redis.call('nosuch') end, function(e) return type(e) end)}
----
local t={1,2,3} t[3]=nil return #t
----
return redis.REDIS_VERSION
----
return {KEYS[1],KEYS[2],KEYS[3],ARGV[1],ARGV[2],#KEYS,#ARGV}
----
KEYS[1]='x' return KEYS
----
table.insert(redis,'x')
----
return table.concat({1,2,{}})
----
return {next({a=1})}
----
return next(redis) ~= nil
----
return rawequal(_G,_G)
----
return #redis
----
return tostring(print)
----
return _VERSION
----
return type(gcinfo())
----
return redis.call('time')[1] == redis.call('time')[1]
----
return {pcall(error)}
----
return {select('#',nil,nil)}
----
return tostring(tonumber('0x10'))
----
return ('%5.2f'):format(3.14159)
----
return redis.call('multi')
----
return redis.call('info')~=nil
----
return redis.call('client','id')
----
return redis.call('object','encoding','str')
----
return redis.call('OBJECT','nosuch','str')
----
return redis.call('config','get','x')
----
return redis.call('blpop','nolist',0)
----
return redis.call('xread','block',0,'streams','nos','$')
----
return redis.call('ping')
----
return redis.call('echo',5)
----
#!lua flags=no-writes
return redis.call('set','a',1)
----
#!lua
return 1
----
#!lua foo
return 1
----
#!lua flags=bad
return 1
----
#!lua
----
#!js
return 1
----
#!lua flags=
return redis.call('x')
----
return {redis.sha1hex(1e15), redis.sha1hex(1e14), redis.sha1hex(123456789012345678)}
----
return {redis.sha1hex(0/0), redis.sha1hex(-(0/0)), redis.sha1hex(1.5), redis.sha1hex(true), redis.sha1hex({})}
----
return {3.99, -3.99, 2^63, -2^63, 2^64, 0/0, 1/0, -1/0, 2^53+1}
