"""The libraries of scripts against the real Redis: cjson, cmsgpack, struct and bit."""

from __future__ import annotations

import random

import pytest

from support.process import Pair, RedisProcess, ServerProcess
from support.random_scripts import SHOW, RandomScripts

pytestmark = [pytest.mark.judge, pytest.mark.since(8, 10)]

ENCODE = [
    "{}", "{{}}", "{1, 2, 3}", "{1, nil, 3}", "{nil, nil, 3}", "{[3] = 1}", "{[20] = 1}",
    "{[2] = 1, [10] = 2}", "{[11] = 1}", "{1, 2, x = 3}", "{[0] = 1}", "{[-1] = 1}",
    "{[1.5] = 1}", "{[-0.0] = 2}", "{[2^40] = 1}", "{[2^40] = 1, [3] = 2}", "{[true] = 1}",
    "{[{}] = 1}", "nil", "cjson.null", "true", "{false}", "tostring",
    "coroutine.create(function() end)", "0/0", "1/0", "{-1/0}", "0", "-0.0", "1e15", "1e14",
    "123456789012345", "1e300", "5e-324", "1/3", "0.1", "100", "1e20", "-1e15", "2^53", "-2^63",
    "999", "1000", "-999", "1e3", "''", "'/'", "'\\0\\1\\31\\32\\127\\128\\255'",
    "'\\b\\f\\n\\r\\t\"\\\\/'", "('x'):rep(100000)", "('\"'):rep(100000)",
    "{('k'):rep(31) .. '/'}", "{['/\"\\n'] = 1, ['\\0'] = '\\0'}", "1, 2", "",
    "setmetatable({1, nil, 3}, {__index = function() return 5 end})",
    "setmetatable({}, {__is_cjson_array = true})", "setmetatable({}, {__is_cjson_array = false})",
    "setmetatable({x = 1, 'a'}, {__is_cjson_array = 'no'})",
    "setmetatable({[20] = 1}, {__is_cjson_array = 1})",
    "setmetatable({}, setmetatable({}, {__index = {__is_cjson_array = true}}))",
    "setmetatable({}, setmetatable({}, {__index = function() error('x') end}))",
    "setmetatable({}, {__metatable = {__is_cjson_array = true}})",
]  # fmt: skip
DECODE = [
    "", " ", "\0", "\0\0", "1\0", " 1\0x", '"a\0"', '["a\0"]', "[1,\0]", "1 2", "1]", "[1 2]",
    "[1,]", "[,1]", "[", "]", "{", "}", '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', "{1:2}",
    '{"a" 1}', '{"a":1 "b":2}', '{"a\\q":1}', '{"a":1,"b\\u12":2}', '{"a"b}', '{"a":}', '{:}',
    '["abc', '["abc\\', '["abc\\u', '["\\u12', '["\\ud800"]', '["\\ud800\\u0041"]', '["\\udc00"]',
    '["\\ud83d\\ude00"]', '["\\uD83D\\uDE00\\u00e9\\u20ac\\u0000"]',
    '["\\b\\f\\n\\r\\t\\/\\"\\\\"]', '["\\x"]', '["a\\"b\\"c","d"]', '["\\\\","\\\\\\\\"]',
    '{"\\u0061":"\\u0062"}', '["\t\n\x01\x7f"]', "-", "[-]", "+1", "[+1]", "[+ 1]", "+", ".5",
    "[-.5]", "1.", "1.5.2", "01", "-01", "1e5", "1E+5", "1e", "1e+", "1e999", "-1e999", "1e-999",
    "0x1F", "[0x]", "0x1.8p1", "0X1P-4", "-0x10", "-0", "nan", "NaN", "[nan(1)]", "nan(1-2)",
    "-nan", "n", "nanx", "inf", "Infinity", "infinit", "-INF", "-infinityx", "i", "true", "truex",
    "tru", "false", "fals", "null", "nul", "None", "é", "'a'", "123456789012345678901234567890",
    "9007199254740993", "0.1", "1e15", "[1 ,2 ]", ' { "a" : 1 , "b" : [ ] , "c" : { } } ',
    '{"a":1,"a":2,"":3}', "\t[\r\n]", "[\f]", "[\x0b1]", "[[[[[[[[]]]]]]]]", '"a" ', '""',
    '{"a":"","b":"x"}', "[true,false,null,1,\"a\"]",
]  # fmt: skip
SETTINGS = [
    "encode_max_depth", "decode_max_depth", "encode_number_precision", "encode_sparse_array",
    "encode_invalid_numbers", "decode_invalid_numbers", "encode_keep_buffer",
    "decode_array_with_array_mt",
]  # fmt: skip
VALUES = [
    "", "nil", "true", "false", "0", "1", "14", "15", "-1", "2^31-1", "2^31", "2^32+3", "1e300",
    "0/0", "1.9", "'5'", "'0x10'", "'on'", "'off'", "'null'", "'x'", "'on\\0x'", "{}",
    "cjson.null", "tostring", "1, 2", "true, 3", "true, 3, 4", "true, 'x'", "true, 3, {}",
    "false, -1", "1, 2, 3, 4", "false, 0", "nil, nil, 5",
]  # fmt: skip
# What the settings change.
CHANGED = [
    "cjson.encode_max_depth(2) return cjson.encode({{{}}})",
    "cjson.encode_max_depth(2) return cjson.encode({{}})",
    "cjson.decode_max_depth(2) return cjson.decode('[[[]]]')",
    'cjson.decode_max_depth(2) return cjson.encode(cjson.decode(\'[{"a":1}]\'))',
    "return cjson.decode(('['):rep(1001))", "return cjson.decode(('['):rep(1000))",
    "local t = {} for _ = 1, 1000 do t = {t} end return cjson.encode(t)",
    "local t = {} for _ = 1, 999 do t = {a = t} end return cjson.encode(t)",
    "cjson.decode_max_depth(10^6) return cjson.decode(('['):rep(7998))",
    "cjson.decode_max_depth(10^6) return cjson.decode(('['):rep(7999))",
    "cjson.decode_max_depth(10^6) return cjson.decode(('{\"a\":'):rep(4000))",
    "cjson.decode_max_depth(10^6) return cjson.decode(('{\"a\":'):rep(3999))",
    ("cjson.encode_max_depth(10^6) local t = {} for _ = 1, 7996 do t = {t} end return "
     "cjson.encode(t)"),
    ("cjson.encode_max_depth(10^6) local t = {} for _ = 1, 7997 do t = {t} end return "
     "cjson.encode(t)"),
    ("cjson.encode_max_depth(10^6) local t = {} for _ = 1, 3998 do t = {a = t} end return "
     "cjson.encode(t)"),
    ("cjson.encode_max_depth(10^6) local t = {} for _ = 1, 3999 do t = {a = t} end return "
     "cjson.encode(t)"),
    ("cjson.encode_number_precision(3) return cjson.encode({1/3, 1000, 99999, 1e15, 12, "
     "{[1.23456] = 1}})"),
    "cjson.encode({999, 12}) cjson.encode_number_precision(1) return cjson.encode({999, 12, 1})",
    "cjson.encode_sparse_array(true) return cjson.encode({[100] = 1})",
    "cjson.encode_sparse_array(false, 0) return cjson.encode({[100] = 1})",
    "cjson.encode_sparse_array(true, 1, 3) return cjson.encode({{1, nil, 3}, {1, nil, nil, 4}})",
    "cjson.encode_invalid_numbers(true) return cjson.encode({0/0, 1/0, -1/0, {[1/0] = 1}})",
    "cjson.encode_invalid_numbers('null') return cjson.encode({0/0, 1/0, -1/0, {x = 0/0}})",
    *(f"cjson.decode_invalid_numbers(false) return cjson.encode(cjson.decode('[{number}]'))"
      for number in "1 -1 0 -0 01 0x1 +1 nan -inf i - 0.5 -i".split()),
    ("cjson.decode_array_with_array_mt(true) return "
     "cjson.encode(cjson.decode('[[],{},[1],{\"a\":[]}]'))"),
    ("cjson.decode_array_with_array_mt(true) local a = cjson.decode('[]') a.x = 5 return "
     "cjson.encode(a)"),
    ("cjson.decode_array_with_array_mt(true) local a = cjson.decode('[[],[]]') "
     "local first, second = getmetatable(a[1]), getmetatable(a[2]) "
     "return {tostring(first == second), tostring(first.__is_cjson_array)}"),
    ("local other = cjson.new() other.encode_number_precision(3) return {other.encode(1/3), "
     "cjson.encode(1/3)}"),
    ("local names = {} for name, value in pairs(cjson) do "
     "table.insert(names, name .. type(value)) end table.sort(names) return names"),
    "return {tostring(cjson.null), cjson._NAME, cjson._VERSION, type(cjson.new().null)}",
]  # fmt: skip
PACK = [
    "", "nil", "nil, nil", "true, false",
    "0, -0.0, 127, 128, 255, 256, 65535, 65536, 2^32-1, 2^32, 2^53",
    "-1, -32, -33, -128, -129, -32768, -32769, -2^31, -2^31-1, -2^53, -2^63, 2^63, 2^64",
    "0.5, 0.1, 1/3, 1e300, 1/0, -1/0, 1.5, 1e38, 3.4e38, 3.5e38", "0/0", "'', 'a', ('a'):rep(31)",
    "('a'):rep(32)", "('a'):rep(255)", "('a'):rep(256)", "('a'):rep(65535)", "('a'):rep(65536)",
    "{}, {{}}, {1, 2}, {1, nil, 3}, {[1] = 1, [3] = 3}", "{[0] = 1}", "{a = 1}", "{[1.5] = 1}",
    "{[2^31] = 1}", "{[true] = false}", "tostring, cjson.null", "{tostring}", "{[{}] = {}}",
    "5e-324, 2^-1022 - 2^-1074, 2^-1022, 2^1023 * 1.9, -1/3, 1795768786724.5, -5e-324",
    "{true, 5, false, 'b', x = 1/3}, {a = true, b = false, c = '', d = {}, e = -1, f = 300}",
    "(function() local t = {} for i = 1, 15 do t[i] = i end return t end)()",
    "(function() local t = {} for i = 1, 16 do t[i] = i end return t end)()",
    "(function() local t = {} for i = 1, 65536 do t[i] = 1 end return t end)()",
    "(function() local t = {} for i = 1, 16 do t[-i] = i end return t end)()",
    "(function() local t = {} for _ = 1, 20 do t = {t} end return t end)()",
    "(function() local t = {} t.t = t return t end)()",
]  # fmt: skip
UNPACK = [
    "unpack()", "unpack(nil)", "unpack({})", "unpack(12)", "unpack('')", "unpack('\\1\\2\\3')",
    "unpack('\\193')", "unpack('\\196\\1a')", "unpack('\\199\\1\\1a')", "unpack('\\212\\1\\1')",
    "unpack('\\129\\192\\1')", "unpack('\\129\\202\\127\\192\\0\\0\\1')", "unpack('\\129\\1')",
    "unpack('\\207\\255\\255\\255\\255\\255\\255\\255\\1')",
    "unpack('\\211\\127' .. ('\\255'):rep(7))", "unpack('\\209\\255\\1')",
    "unpack('\\221\\255\\255\\255\\255')", "unpack('\\219\\255\\255\\255\\255a')",
    "unpack('\\222\\0\\1\\1\\2')", "unpack('\\218\\0\\2ab')", "unpack('\\202\\0\\0\\0')",
    "unpack('\\203\\128' .. ('\\0'):rep(7))", "unpack('\\203\\0\\1\\2')", "unpack('\\131\\161a')",
    "unpack('\\203\\127\\248' .. ('\\0'):rep(6))", "unpack('\\130\\161a\\192\\161b')",
    "unpack('\\149\\192\\192\\5\\192\\161a')", "unpack('\\130\\163a')", "unpack('\\147\\192\\192')",
    "unpack('\\148\\1')", "unpack('\\1\\192\\192')", "unpack(('\\145'):rep(3999))",
    "unpack(('\\145'):rep(4000))", "unpack(('\\145'):rep(5000))",
    "unpack(('\\129\\1'):rep(4100))", "unpack(('\\1'):rep(8000))", "unpack_one()",
    "unpack_one(nil, 'x')", "unpack_one('\\1\\2')", "unpack_one('\\1\\2', 1)",
    "unpack_one('\\1\\2', 2)", "unpack_one('\\1\\2', 3)", "unpack_one('\\1\\2', -1)",
    "unpack_one('', 0)", "unpack_one('\\1\\2', '1')", "unpack_one('\\1\\2', 1.9)",
    "unpack_one('\\1\\2', -2^40)", "unpack_limit('\\1\\2')", "unpack_limit('\\1\\2', 1)",
    "unpack_limit('\\1\\2', 0)", "unpack_limit(nil, 0)", "unpack_limit('\\1\\2', 0, 1)",
    "unpack_limit('\\1\\2', 5, 1)", "unpack_limit('\\1\\2', -1)", "unpack_limit('\\1\\2', 1, {})",
    "unpack_limit('\\1\\2\\3', 2)", "unpack_limit(('\\1'):rep(7999), 7999)",
]  # fmt: skip
COUNTS = [
    "return #{cmsgpack.unpack(('\\1'):rep(7999))}",
    "return #{cmsgpack.unpack_limit(('\\1'):rep(7800), 7800)}",
    "return {cmsgpack._NAME, cmsgpack._VERSION, cmsgpack._COPYRIGHT, cmsgpack._DESCRIPTION}",
]  # fmt: skip
STRUCT = [
    "pack()", "pack(nil)", "pack('')", "pack('i')", "pack('ii', 1)", "pack('i', nil)",
    "pack('i', 'x')", "pack('z')", "pack('=')", "pack('!3')", "pack('!0')", "pack('!1048576')",
    "pack('i33', 1)", "pack('i0', 1)", "pack('i99999999999', 1)", "pack('c5', 'abc')",
    "pack('c0', 'abc')", "pack('s', 'a\\0b')", "pack('c', '')", "pack('i\\0z', 1)",
    "pack('>i3I7<i16', -2, 2^40, -3)", "pack('bBhHiIlLT', -1, 255, -2, 65535, -3, 4, 5, 6, 7)",
    "pack('fd>fd', 1.5, 0.1, 1e39, -1/0)", "pack('d', 0/0)", "pack('l', 1e300)",
    "pack('L', 2^63)", "pack('L', 2^64)", "pack('L', -1)", "pack('l', -1e300)", "pack('L', 1/0)",
    "pack('!4bi', 1, 2)", "pack('!bd', 1, 2)", "pack('!16bi3i5', 1, 2, 3)", "pack('!4 x x i', 1)",
    "pack(12)", "pack({})", "pack('i', {})", "pack('s', true)", "pack('s', 1e15)",
    "pack('c3', 12345)", "pack('b', 300)", "pack('b', 1.9)", "pack('b', -1.9)", "unpack()",
    "unpack('i')", "unpack('i', 'abc')", "unpack('i', 'abcd')", "unpack('i', 'abcdefgh', 5)",
    "unpack('i', 'abcdefgh', 6)", "unpack('i', 'abcdefgh', 0)", "unpack('', 'abc', -5)",
    "unpack('', 'abc', 99)", "unpack('<', 'abc', 99)", "unpack('z', 'abc', 99)",
    "unpack('', 'abc', 3)", "unpack('x', '')", "unpack('s', 'abc')", "unpack('s', 'a\\0b\\0')",
    "unpack('ss', 'a\\0b\\0')", "unpack('c0', 'abc')", "unpack('Bc0', '\\2abc')",
    "unpack('Bc0', '\\9abc')", "unpack('c2c0', '01abc')", "unpack('c1c0', 'xabc')",
    "unpack('bc0', '\\255abc')", "unpack('dc0', struct.pack('d', 0/0))",
    "unpack('i9', ('\\255'):rep(9))", "unpack('I16', ('\\1'):rep(16))",
    "unpack('>i16', ('\\129'):rep(16))", "unpack('L', ('\\255'):rep(8))",
    "unpack('l', ('\\255'):rep(8))", "unpack('>l', '\\127' .. ('\\255'):rep(7))",
    "unpack('i0', '')", "unpack('f', '\\0\\0\\128\\127')",
    "unpack('>d', '\\127\\248\\0\\0\\0\\0\\0\\0')", "unpack('!4bi', '\\1\\0\\0\\0\\2\\0\\0\\0')",
    "unpack('c5', 'abc')", "unpack('i', {})", "unpack('i', 'abcd', 'x')",
    "unpack('i', 'abcd', {})", "unpack('b', 5)", "unpack('!0', 'abc')", "size()", "size('')",
    "size('bBhHiIlLTfdx')", "size('s')", "size('c0')", "size('c5')", "size('z')", "size('=')",
    "size('!4bi')", "size('!3')", "size('i33')", "size('c99999999999')", "size('ac3')",
    "size('!bd!2bd')", "size({})", "size('é')",
]  # fmt: skip
BIT = [
    "tobit()", "tobit(nil)", "tobit('x')", "tobit({})", "tobit(true)", "tobit('0x10')",
    "tobit(' 12 ')", "tobit('1_0')", "tobit('1e2')", "tobit('')", "tobit('1\\0x')", "tobit(0.5)",
    "tobit(1.5)", "tobit(2.5)", "tobit(-0.5)", "tobit(2^31)", "tobit(2^32+5)", "tobit(-2^31-1)",
    "tobit(2^51)", "tobit(2^51+0.5)", "tobit(2^52+1)", "tobit(2^53+3)", "tobit(1e300)",
    "tobit(0/0)", "tobit(1/0)", "tobit('inf')", "bnot(0)", "bnot(1, 'x')", "band(1, 3, 7)",
    "band(5)", "band(1, {}, 'x')", "band('x', {})", "bor(1, 2^31)", "bxor(1, 1, 1)",
    "lshift(1, 31)", "lshift(1, 32)", "lshift(1, -1)", "lshift(1)", "rshift(-1, 4)",
    "arshift(-1, 4)", "arshift(-2^31, 31)", "rol(2^31, 1)", "rol(1, 0)", "ror(1, 1)",
    "ror(1, 33)", "bswap(1)", "bswap(-2)", "tohex(255)", "tohex(-1, 4)", "tohex(-1, -4)",
    "tohex(1, 0)", "tohex(1, 100)", "tohex(1, nil)", "tohex(1, -2^31)", "tohex(-1, 2.5)",
]  # fmt: skip
BASE = [
    "unpack({}, 1, 10000)", "unpack({}, 1, {})", "loadstring({})", "rawset(redis, 'a', 1)",
    "setmetatable(redis, {})", "table.insert({}, 1, 2, 3)", "table.insert(redis, 1)",
    "next({}, 5)", "coroutine.create(5)", "coroutine.resume(5)", "pairs(5)",
    *(f"{name}({given})"
      for name in ("pcall", "xpcall", "load", "loadstring", "unpack", "next", "pairs", "ipairs",
                   "rawget", "rawset", "setmetatable", "getmetatable", "table.insert",
                   "table.foreach", "coroutine.create", "coroutine.resume", "coroutine.wrap")
      for given in ("", "1", "{}", "redis", "'x'", "redis, 1", "{}, 'x'", "{}, 'x', 1")
      if (name, given) != ("getmetatable", "'x'")),  # shown as another table
    "coroutine.create(pcall)", "coroutine.wrap(pcall)", "unpack({}, 1, 'x')", "load(1, {})",
    "table.insert({}, 1, 2, 3)", "table.insert(redis, 1, 2, 3)", "_G[{}]", "_G[true]", "_G[nil]",
    "_G[1.5]", "tostring(pcall(next))", "unpack({}, false)",
    "unpack({}, 1, false)", "select('#', pcall(error, {}))", "select('#', pcall(error, {err = 1}))",
    "select('#', pcall(error, {err = 'E x'}))", "select('#', pcall(error))",
    "type((select(2, pcall(error, {err = 1}))))", "type((select(3, pcall(error, {err = {}}))))",
    "setmetatable(redis, {})", "rawset(redis, 1, 2)",
    "table.foreach({}, 5)", "loadstring('x', {})", "load(function() end, {})",
]  # fmt: skip
# Chunks that come from a function of the script: what it raises is given back.
READERS = [
    "error('boom')",
    "error({err = 'E x'})",
    "return {}",
    "return true",
    "return redis.call('GET')",
    "n = n + 1 if n < 4 then return 5 end",
    "n = n + 1 return n == 1 and 'return 7' or nil",
    "n = n + 1 return n == 1 and 'return ' or n == 2 and 7 or ''",
]
# What takes long when the time that it takes is more than proportional to the size.
LARGE = [
    "#cjson.encode(cjson.decode('\"' .. ('x'):rep(10^7) .. '\"'))",
    "#cjson.encode(cjson.decode('\"' .. ('\\\\\"'):rep(10^6) .. '\"'))",
    "#cjson.encode(cjson.decode('\"' .. ('\\\\\\\\'):rep(10^6) .. '\"'))",
    "#cjson.decode('\"' .. ('\\\\ud83d\\\\ude00'):rep(3 * 10^5) .. '\"')",
    "#cjson.decode('[' .. ('\"a\",'):rep(5 * 10^5) .. '\"\\\\n\"]')",
    "#cjson.decode('[' .. ('1 , '):rep(3 * 10^5) .. '1]')",
    "#cjson.decode((' '):rep(10^7) .. '[]')",
    "cjson.decode('[\"' .. ('\\\\n'):rep(10^6))",
    "cjson.decode(('1'):rep(10^6))",
    "#cjson.encode(('\\1'):rep(10^6))",
    "#cmsgpack.pack(cmsgpack.unpack('\\221\\0\\4\\0\\0' .. ('\\1'):rep(2^18)))",
    "cmsgpack.unpack('\\221\\255\\255\\255\\255' .. ('\\1'):rep(10^6))",
]
# Ways in which a call may fail. They decide what stands before the error.
WAYS = [
    "return {call}", "local x = {call}", "\n\nreturn {call}",
    "return {{pcall(function() return {call} end)}}",
    "return {{pcall(function()\nlocal x = {call}\nend)}}",
    "local f = function()\nreturn {call}\nend\nreturn f()",
    "return {{pcall(function() local library = {library} return library.{rest} end)}}",
    "return {{select(2, pcall(pcall, function() {call} end))}}",
    "local f = {function}\nreturn f{arguments}", "return {{pcall({function}, {{}}, tostring)}}",
    "return ({call})", "return {library}:{rest}", "if true then return {call} end return 1",
    "return {call}, 5", "return loadstring([[return {call}]], 'x')()",
]  # fmt: skip
FAILING = [
    "cjson.encode(tostring)", "cjson.encode()", "cjson.decode('[')", "cjson.decode({})",
    "cjson.encode_max_depth(0)", "cmsgpack.unpack('\\193')", "cmsgpack.pack()",
    "cmsgpack.unpack_one('', 5)", "cmsgpack.unpack('\\129\\192\\1')", "struct.pack('z')",
    "struct.unpack('i', '')", "struct.size('s')", "bit.tobit({})", "bit.band(1, 'x')",
    "math.random(0)",
]  # fmt: skip


def lua(data: str) -> str:
    """A string of Lua."""
    return '"' + "".join(f"\\{byte:03d}" for byte in data.encode("latin-1", "replace")) + '"'


@pytest.fixture
def fresh(pair: Pair) -> Pair:
    """With the libraries as they are at first."""
    pair.both("SCRIPT", "FLUSH", "SYNC")
    return pair


def both_call(pair: Pair, call: str) -> None:
    """Make a call plainly and within a pcall that shows all that comes of it."""
    function, _, arguments = call.partition("(")
    comma = ", " if arguments != ")" else ""
    pair.both("EVAL", f"return {call}", 0)
    pair.both("EVAL", f"{SHOW}return shown(pcall({function}{comma}{arguments})", 0)


def test_cjson_encode(fresh: Pair) -> None:
    for value in ENCODE:
        both_call(fresh, f"cjson.encode({value})")


def test_cjson_decode(fresh: Pair) -> None:
    for text in DECODE:
        both_call(fresh, f"cjson.decode({lua(text)})")
        for form in ("[{}]", '{{"a":{}}}', '{{"k":"v",  "a" :  {} , "b":1}}', "[1, {},2]"):
            both_call(fresh, f"cjson.decode({lua(form.format(text))})")
        fresh.both("EVAL", f"return cjson.encode(cjson.decode({lua(text)}))", 0)


@pytest.mark.parametrize("name", SETTINGS)
def test_cjson_settings(fresh: Pair, name: str) -> None:
    for values in VALUES:
        both_call(fresh, f"cjson.{name}({values})")
        fresh.both("EVAL", f"{SHOW}return shown(cjson.{name}())", 0)


def test_what_cjson_settings_change(pair: Pair) -> None:
    for script in CHANGED:
        pair.both("SCRIPT", "FLUSH", "SYNC")
        pair.both("EVAL", script, 0)


def test_settings_stay_until_scripts_are_flushed(fresh: Pair) -> None:
    fresh.both("EVAL", "cjson.encode_number_precision(3)", 0)
    assert fresh.both("EVAL", "return cjson.encode(1/3)", 0) == b"$5\r\n0.333\r\n"
    fresh.both("SCRIPT", "FLUSH", "SYNC")
    assert fresh.both("EVAL", "return cjson.encode(1/3)", 0) == b"$16\r\n0.33333333333333\r\n"


def test_cmsgpack_pack(fresh: Pair) -> None:
    for values in PACK:
        both_call(fresh, f"cmsgpack.pack({values})")
        fresh.both("EVAL", f"{SHOW}return shown(cmsgpack.unpack(cmsgpack.pack({values})))", 0)


def test_cmsgpack_unpack(fresh: Pair) -> None:
    for call in UNPACK:
        both_call(fresh, f"cmsgpack.{call}")


def test_cmsgpack_counts(fresh: Pair) -> None:
    for script in COUNTS:
        fresh.both("EVAL", script, 0)


def test_struct(fresh: Pair) -> None:
    for call in STRUCT:
        both_call(fresh, f"struct.{call}")


def test_bit(fresh: Pair) -> None:
    for call in BIT:
        both_call(fresh, f"bit.{call}")


@pytest.mark.parametrize("call", FAILING)
def test_where_a_call_failed(fresh: Pair, call: str) -> None:
    function, _, arguments = call.partition("(")
    library, _, name = function.partition(".")
    for way in WAYS:
        if arguments == ")" and ":" in way:
            continue  # which hands the library over, and ours are shown in another way
        script = way.format(
            call=call,
            function=function,
            library=library,
            rest=f"{name}({arguments}",
            arguments=f"({arguments}",
        )
        fresh.both("EVAL", script, 0)


def test_where_a_call_of_the_base_failed(fresh: Pair) -> None:
    for call in BASE:
        fresh.both("EVAL", f"return {call}", 0)
        fresh.both("EVAL", f"\n\nlocal x = {call}", 0)
        fresh.both("EVAL", f"local function f() return {call} end\nreturn f()", 0)


@pytest.mark.parametrize("body", READERS)
def test_chunks_that_are_read(fresh: Pair, body: str) -> None:
    read = f"local n = 0 local chunk, text = load(function() {body} end) "
    fresh.both("EVAL", read + "return {type(chunk), chunk and chunk()}", 0)
    fresh.both("EVAL", f"{SHOW}return shown(pcall(function() {read} return text end))", 0)


def test_large_values(fresh: Pair) -> None:
    for value in LARGE:
        fresh.both("EVAL", f"return {value}", 0)


def test_keys_are_encoded_in_the_same_order(fresh: Pair) -> None:
    rng = random.Random(7)
    for size in (1, 2, 3, 5, 8, 13, 30, 100, 1000):
        names = [rng.choice("abc") + str(rng.randrange(10**6)) for _ in range(size)]
        text = "{" + ",".join(f'"{name}":{place}' for place, name in enumerate(names)) + "}"
        script = (
            "return {cjson.encode(cjson.decode(ARGV[1])), cmsgpack.pack(cjson.decode(ARGV[1]))}"
        )
        fresh.both("EVAL", script, 0, text)


@pytest.mark.parametrize("seed", range(8))
def test_random_scripts(server: ServerProcess, redis_server: RedisProcess, seed: int) -> None:
    scripts = RandomScripts(random.Random(seed))
    both = Pair.of(server, redis_server)
    both.both("SCRIPT", "FLUSH", "SYNC")
    for _ in range(5):
        batch = [("EVAL", scripts.script(), 0) for _ in range(100)]
        ours, real = both.ours.pipeline(*batch), both.real.pipeline(*batch)
        for words, here, there in zip(batch, ours, real, strict=True):
            assert here == there, words[1]
    both.both("SCRIPT", "FLUSH", "SYNC")
    both.close()
