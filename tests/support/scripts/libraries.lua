#!lua name=l1
redis.register_function("f1", function(keys,args) local t={} for k,v in pairs(_G) do t[#t+1]=k end table.sort(t) return table.concat(t," ") end)
redis.register_function("f2", function(keys,args) local t={} for k,v in pairs(redis) do t[#t+1]=k end table.sort(t) return table.concat(t," ") end)
redis.register_function{function_name="f3", callback=function(keys,args) return {keys,args} end, flags={"no-writes"}, description="hello"}
redis.register_function("f4", function(keys,args) return redis.call("set",keys[1],args[1]) end)
redis.register_function("f5", function(keys,args) return redis.register_function("x", function() end) end)
redis.register_function("f6", function(keys,args) error("boom") end)
redis.register_function("f7", function(keys,args) return foo end)
redis.register_function("f8", function(keys,args) return redis.nosuch end)
redis.register_function("f9", function(keys,args) return redis.call("nosuch") end)
redis.register_function("f10", function(keys,args) return redis.pcall("nosuch") end)
redis.register_function("f11", function(keys,args) redis.setresp(3) return {true,false,{double=1}} end)
----
#!lua name=l9

----
#!lua name=l9
x x
----
#!lua name=l9
error("a")
----
#!lua name=l9
redis.register_function("f-1", function() end)
----
#!lua name=l9
redis.register_function("f1")
----
#!lua name=l9
redis.register_function()
----
#!lua name=l9
redis.register_function{function_name="a"}
----
#!lua name=l9
redis.register_function{callback=function() end}
----
#!lua name=l9
redis.register_function{function_name="a", callback=function() end, flags={"bad"}}
----
#!lua name=l9
redis.register_function{function_name="a", callback=function() end, flags="x"}
----
#!lua name=l9
redis.register_function{function_name="a", callback=function() end, description=1}
----
#!lua name=l9
redis.register_function{function_name="a", callback=function() end, description={}}
----
#!lua name=l9
redis.register_function{function_name="a", callback=function() end, foo=1}
----
#!lua name=l9
redis.register_function{function_name="a", callback=function() end, [1]=1}
----
#!lua name=l9
redis.register_function{function_name={}, callback=function() end}
----
#!lua name=l9
redis.register_function{function_name="a", callback=1}
----
#!lua name=l9
redis.register_function("a", 1)
----
#!lua name=l9
redis.register_function({}, function() end)
----
#!lua name=l9
redis.register_function(1, function() end)
----
#!lua name=l9
redis.register_function("a", function() end, 1)
----
#!lua name=l9
redis.register_function("a", function() end) redis.register_function("a", function() end)
----
#!lua name=l9
foo=1
----
#!lua name=l9
return bar
----
#!lua name=l9
redis.setresp(3)
----
#!lua name=l9
redis.call=1
----
#!lua name=l9
return 5
----
#!lua name=l9
redis.log(1,"x")
----
#!lua name=l9
local a = redis.REDIS_VERSION redis.register_function("a", function() return a end)
----
#!lua name=l9
redis.register_function{function_name="a", callback=function() end, flags={1}}
----
#!lua name=l9
redis.register_function{function_name="a", callback=function() end, flags={"no-writes","allow-oom","allow-stale","no-cluster","allow-cross-slot-keys"}}
----
#!lua name=l9
redis.register_function{"a", function() end}
----
#!lua name=l9
redis.register_function(nil, function() end)
----
#!lua name=l9
redis.register_function("", function() end)
----
#!lua name=l9
return redis.register_function("xx", function() end)
----
#!lua name=l9
x.y.z=1
----
#!lua name=l9
local x = nil; x()
----
x
----
#!lua
x
----
#!lua name=a-b
x
----
#!lua name=
x
----
#!js name=x
x
----
#!lua name=l9 flags=no-writes
x
----
#!lua name=l9 name=l8
x
----
#!lua foo=l9
x
----
#!lua name=l9
----
#! lua name=l9
x
----
#!lua Name=l9
redis.register_function("a", function() end)
----
#!LUA name=l9
redis.register_function("a", function() end)
----
#!lua name="l9"
redis.register_function("a", function() end)
----
#!lua   name=l9  
redis.register_function("a", function() end)
----

----
#!
----
#!lua name=l9 =
x
----
#!lua name
x
----
#!lua name=l8
redis.register_function("f1", function() end)
