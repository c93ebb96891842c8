// ioredis against the server. It speaks RESP2.
"use strict";

const assert = require("node:assert/strict");
const { after, before, beforeEach } = require("node:test");
const Redis = require("ioredis");
const { check, eventually, port, tls } = require("./common.js");

const client = new Redis(port, "127.0.0.1", {
  tls,
  connectionName: "driver",
  maxRetriesPerRequest: 3,
  retryStrategy: (tries) => (tries > 20 ? null : 20),
});
const second = client.duplicate();

for (const each of [client, second]) each.on("error", () => {}); // told to the pending calls, too

const blocked = () =>
  eventually(async () => /blocked_clients:1\r/.test(await client.info("clients")), "blocked");

before(() => Promise.all([client.ping(), second.ping()]));

beforeEach(() => client.flushall());

after(() => {
  client.disconnect();
  second.disconnect();
});

check("the connection is the one that was asked for", async () => {
  const info = await client.client("INFO");
  assert.match(info, / name=driver /);
  assert.match(info, / lib-name=ioredis/);
  assert.match(info, / resp=2 /);
});

check("keys and strings", async () => {
  assert.equal(await client.set("k", "v", "EX", 100, "NX"), "OK");
  assert.equal(await client.set("k", "other", "NX"), null);
  assert.equal(await client.ttl("k"), 100);
  assert.deepEqual(await client.getBuffer("k"), Buffer.from("v"));
  const bytes = Buffer.from([0, 255, 13, 10, 0]);
  await client.set("bytes", bytes);
  assert.deepEqual(await client.getBuffer("bytes"), bytes);
  await client.mset(new Map([["a", "1"], ["b", "2"]]));
  assert.deepEqual(await client.mget("a", "b", "none"), ["1", "2", null]);
  assert.equal(await client.incrby("n", 5), 5);
  const seen = [];
  for await (const keys of client.scanStream({ match: "?", count: 2 })) seen.push(...keys);
  assert.deepEqual([...new Set(seen)].sort(), ["a", "b", "k", "n"]);
});

check("append to a stream and read it back", async () => {
  assert.equal(await client.xadd("s", "1-1", "f", "one"), "1-1");
  assert.equal(await client.xadd("s", "1-*", "f", "two", "g", "zwei"), "1-2");
  assert.equal(await client.xadd("none", "NOMKSTREAM", "*", "f", "v"), null);
  const chosen = await client.xadd("s", "MAXLEN", "=", 2, "*", "f", "three");
  assert.match(chosen, /^\d{13}-0$/);
  assert.equal(await client.xlen("s"), 2);
  assert.deepEqual(await client.xrange("s", "-", "+", "COUNT", 1), [
    ["1-2", ["f", "two", "g", "zwei"]],
  ]);
  assert.deepEqual(await client.xrevrange("s", "+", "(1-2"), [[chosen, ["f", "three"]]]);
  assert.equal(await client.xdel("s", "1-2", "1-1"), 1);
  assert.equal(await client.xtrim("s", "MINID", "~", chosen), 0);
  await assert.rejects(client.xadd("s", "1-1", "f", "v"), /equal or smaller than the target/);
  await assert.rejects(client.xadd("s", "*", "f"), /wrong number of arguments for 'xadd' command/);
});

check("inspect a stream", async () => {
  await client.xadd("s", "1-1", "f", "v");
  const reply = await client.xinfo("STREAM", "s");
  const info = new Map(reply.flatMap((_, n) => (n % 2 ? [] : [[reply[n], reply[n + 1]]])));
  assert.equal(info.get("length"), 1);
  assert.deepEqual(info.get("last-entry"), ["1-1", ["f", "v"]]);
  assert.equal(await client.object("ENCODING", "s"), "stream");
});

check("block for an entry on a duplicated connection", async () => {
  const read = second.xread("COUNT", 10, "BLOCK", 5000, "STREAMS", "a", "b", "$", "$");
  await blocked();
  await client.xadd("b", "7-7", "f", "v");
  assert.deepEqual(await read, [["b", [["7-7", ["f", "v"]]]]]);
  assert.equal(await second.xread("BLOCK", 20, "STREAMS", "a", "$"), null);
});

check("follow a stream", async () => {
  const seen = [];
  const follow = async () => {
    let last = "0-0";
    while (seen.length < 50) {
      const reply = await second.xread("COUNT", 7, "BLOCK", 5000, "STREAMS", "s", last);
      for (const [id, fields] of reply[0][1]) {
        seen.push(fields[1]);
        last = id;
      }
    }
  };
  const following = follow();
  for (let n = 0; n < 50; n++) await client.xadd("s", "*", "n", String(n));
  await following;
  assert.deepEqual(seen, Array.from({ length: 50 }, (_, n) => String(n)));
});

check("messages", async () => {
  const seen = [];
  second.on("message", (channel, message) => seen.push(`${channel} ${message}`));
  second.on("pmessage", (pattern, channel, message) =>
    seen.push(`${pattern} ${channel} ${message}`),
  );
  second.on("smessage", (channel, message) => seen.push(`${channel} ${message}`));
  assert.equal(await second.subscribe("news"), 1);
  assert.equal(await second.psubscribe("n?ws"), 2);
  await second.ssubscribe("shard");
  assert.equal(await client.publish("news", "hello"), 2);
  assert.equal(await client.spublish("shard", "there"), 1);
  await eventually(() => seen.length === 3, "messages");
  assert.deepEqual(seen.sort(), ["n?ws news hello", "news hello", "shard there"]);
  await second.unsubscribe("news");
  await second.punsubscribe("n?ws");
  await second.sunsubscribe("shard");
  assert.equal(await second.set("k", "v"), "OK");
});

check("keyspace notifications", async () => {
  await client.config("SET", "notify-keyspace-events", "KEA");
  try {
    const seen = [];
    second.once("message", (channel, message) => seen.push(`${channel} ${message}`));
    await second.subscribe("__keyspace@0__:s");
    await client.xadd("s", "*", "f", "v");
    await eventually(() => seen.length === 1, "an event");
    assert.deepEqual(seen, ["__keyspace@0__:s xadd"]);
    await second.unsubscribe();
  } finally {
    await client.config("SET", "notify-keyspace-events", "");
  }
});

check("a pipeline", async () => {
  const replies = await client.pipeline().set("k", "v").xadd("k", "*", "f", "v").get("k").exec();
  assert.deepEqual(replies[0], [null, "OK"]);
  assert.match(replies[1][0].message, /^WRONGTYPE /);
  assert.deepEqual(replies[2], [null, "v"]);
});

check("a transaction", async () => {
  const replies = await client.multi().incr("n").xadd("s", "1-1", "f", "v").xlen("s").exec();
  assert.deepEqual(replies, [
    [null, 1],
    [null, "1-1"],
    [null, 1],
  ]);
  const refused = client.multi().set("k", "v").call("XADD", "s").exec();
  await assert.rejects(refused, /EXECABORT/);
  assert.equal(await client.exists("k"), 0);
});

check("WATCH", async () => {
  await second.watch("k");
  await client.set("k", "changed");
  assert.equal(await second.multi().set("k", "mine").exec(), null);
  assert.equal(await client.get("k"), "changed");
});

check("MONITOR", async () => {
  const monitor = await second.monitor();
  try {
    const seen = [];
    monitor.on("monitor", (_, words) => seen.push(words.join(" ")));
    await client.set("watched", "by all");
    await eventually(() => seen.includes("set watched by all"), "the command");
  } finally {
    monitor.disconnect();
  }
});

check("scripts by their name", async () => {
  client.defineCommand("addTwice", {
    numberOfKeys: 1,
    lua: "redis.call('INCRBY', KEYS[1], ARGV[1]) return redis.call('INCRBY', KEYS[1], ARGV[1])",
  });
  assert.equal(await client.addTwice("counter", 3), 6);
  assert.equal(await client.addTwice("counter", 3), 12); // by its SHA-1
  assert.equal(await client.script("FLUSH"), "OK");
  assert.equal(await client.addTwice("counter", 1), 14); // NOSCRIPT, and then the whole text
  await assert.rejects(client.eval("return redis.call('INCR')", 0), /Wrong number of args/);
  const results = await client.pipeline().addTwice("counter", 1).get("counter").exec();
  assert.deepEqual(results, [[null, 16], [null, "16"]]);
});

check("messages of what has changed, redirected to a subscriber", async () => {
  const told = [];
  second.on("message", (channel, keys) => told.push([channel, keys]));
  await second.subscribe("__redis__:invalidate");
  try {
    assert.equal(await client.client("TRACKING", "on", "REDIRECT", await subscriberId()), "OK");
    await client.mget("a", "b");
    await client.mset("a", 1, "b", 1);
    await eventually(() => told.length === 2, "two messages");
    assert.deepEqual(told, [["__redis__:invalidate", "a"], ["__redis__:invalidate", "b"]]);
    assert.equal(await client.client("TRACKING", "off"), "OK");
  } finally {
    second.removeAllListeners("message");
    await second.unsubscribe();
  }
});

const subscriberId = async () => {
  const line = (await client.client("LIST", "TYPE", "PUBSUB")).trim();
  return line.match(/^id=(\d+)/)[1];
};

check("the client comes back when its connection is cut", async () => {
  const id = await second.client("ID");
  assert.equal(await client.client("KILL", "ID", id), 1);
  await eventually(async () => (await second.client("ID")) !== id, "a new connection");
});
