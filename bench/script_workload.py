"""A script as job queues send them: it adds a job, hands it to a worker and notes that it is done.

BullMQ does that with two scripts, which call much the same commands: some 35 for each job.
"""

from __future__ import annotations

from hashlib import sha1
from typing import Final

from bench.peers import Server, encode

SOURCE: Final = """\
local call = redis.call
local waiting, active, done, events, delayed = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local options = cmsgpack.unpack(ARGV[1])
local function note(what, id)
  call("XADD", events, "MAXLEN", "~", options.events, "*", "event", what, "job", id)
end
local id = call("INCR", KEYS[6])
local job = "job:" .. id
local lock = job .. ":lock"
if call("EXISTS", job) == 0 then
  call("HMSET", job, "name", options.name, "data", ARGV[2], "at", options.at, "delay", 0)
  call("LPUSH", waiting, id)
  call("SADD", job .. ":parents", options.name)
  note("waiting", id)
end
local due = call("ZRANGEBYSCORE", delayed, 0, options.at, "LIMIT", 0, 10)
for _, late in ipairs(due) do
  call("ZREM", delayed, late)
end
id = call("RPOPLPUSH", waiting, active)
call("SET", lock, options.token, "PX", options.lasts)
call("HSET", job, "begun", options.at)
call("ZADD", delayed, 0, "marker")
note("active", id)
local found = call("HGETALL", job)
local limits = call("HMGET", KEYS[7], "most", "paused", "rate")
if call("GET", lock) == options.token then
  call("DEL", lock)
  call("SREM", job .. ":parents", options.name)
end
if call("LREM", active, -1, id) < 1 then
  return redis.error_reply("LOST the job")
end
local tries = call("HINCRBY", job, "tries", 1)
call("ZADD", done, options.at, id)
call("HSET", job, "returned", cjson.encode({ number = tries }), "ended", options.at)
local old = call("ZREVRANGE", done, options.keeps.count, -1)
for _, each in ipairs(old) do
  call("DEL", "job:" .. each, "job:" .. each .. ":parents")
end
call("ZREMRANGEBYRANK", done, 0, -(options.keeps.count + 1))
call("XTRIM", events, "MAXLEN", "~", options.events)
note("completed", id)
local left = { call("LLEN", waiting), call("ZCARD", delayed), call("SCARD", job .. ":parents") }
return { found, id, call("HGET", job, "name") or false, limits, left }
"""
SHA: Final = sha1(SOURCE.encode()).hexdigest()
_KEYS: Final = tuple(f"queue:{name}" for name in "wait active done events late id meta".split())
# A map of eight fields: name, token, at, lasts, events, keeps, delay, limiter.
_OPTIONS: Final = (
    b"\x88\xa4name\xa3job\xa5token\xd9\x24%s\xa2at\xcbBz!\xc2\x91\xe5p\x00\xa5lasts\xcdu0"
    b"\xa6events\xcd'\x10\xa5keeps\xde\x00\x01\xa5countd\xa5delay\x00\xa7limiter\xc0"
)


def prepare(server: Server, count: int) -> None:
    """Have the script known."""
    server.control.call("SCRIPT", "LOAD", SOURCE)


def request(number: int) -> bytes:
    """A call of it; ``number`` makes the words differ from those of the last one."""
    options = _OPTIONS % (b"%036d" % number)
    data = f'{{"number":{number},"text":"hello"}}'
    return encode("EVALSHA", SHA, str(len(_KEYS)), *_KEYS, options, data)
