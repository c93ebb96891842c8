// node-redis against the server: streams, messages, transactions, and what is refused.
"use strict";

const assert = require("node:assert/strict");
const { after, before, beforeEach } = require("node:test");
const { createClient, WatchError } = require("redis");
const { check, eventually, port, protocol, tls } = require("./common.js");

const options = {
  RESP: protocol,
  unstableResp3: true, // XREAD as the server has it, a map
  socket: {
    host: "127.0.0.1",
    port,
    ...(tls && { tls: true, ...tls }),
    reconnectStrategy: (tries) => (tries > 20 ? false : 20),
  },
};
const client = createClient(options);
const second = client.duplicate();

for (const each of [client, second]) each.on("error", () => {}); // told to the pending calls, too

const blocked = () =>
  eventually(async () => /blocked_clients:1\r/.test(await client.info("clients")), "blocked");

before(async () => {
  await client.connect();
  await second.connect();
});

beforeEach(() => client.flushAll());

after(() => {
  client.destroy();
  second.destroy();
});

check("the connection is the one that was asked for", async () => {
  const info = await client.clientInfo();
  assert.equal(info.resp, protocol);
  assert.equal(info.libName, "node-redis");
  assert.ok(info.libVer);
  assert.notEqual(await client.clientId(), await second.clientId());
});

check("keys and strings", async () => {
  assert.equal(await client.set("k", "v", { expiration: { type: "EX", value: 100 } }), "OK");
  assert.equal(await client.set("k", "other", { condition: "NX" }), null);
  assert.equal(await client.get("k"), "v");
  assert.equal(await client.ttl("k"), 100);
  assert.equal(await client.getDel("k"), "v");
  assert.equal(await client.get("k"), null);
  assert.equal(await client.incrBy("n", 41), 41);
  assert.equal(Number(await client.incrByFloat("n", 0.5)), 41.5);
  await client.mSet({ a: "1", b: "2" });
  assert.deepEqual(await client.mGet(["a", "b", "c"]), ["1", "2", null]);
  const seen = [];
  for await (const keys of client.scanIterator({ MATCH: "?", TYPE: "string" })) seen.push(...keys);
  assert.deepEqual(seen.sort(), ["a", "b", "n"]);
  assert.equal(await client.type("a"), "string");
  assert.equal(await client.del(["a", "b", "c"]), 2);
});

check("append to a stream and read it back", async () => {
  assert.equal(await client.xAdd("s", "1-1", { f: "one", g: "eins" }), "1-1");
  assert.equal(await client.xAdd("s", "1-*", { f: "two" }), "1-2");
  assert.equal(await client.xAddNoMkStream("none", "*", { f: "v" }), null);
  const chosen = await client.xAdd("s", "*", { f: "three" });
  assert.match(chosen, /^\d{13}-0$/);
  assert.equal(await client.xLen("s"), 3);

  const first = { id: "1-1", message: { f: "one", g: "eins" } };
  const entries = await client.xRange("s", "-", "+", { COUNT: 1 });
  assert.deepEqual(JSON.parse(JSON.stringify(entries)), [first]);
  assert.deepEqual((await client.xRange("s", "(1-1", "1")).map((entry) => entry.id), ["1-2"]);
  assert.deepEqual((await client.xRevRange("s", "+", "-")).map((entry) => entry.id), [
    chosen,
    "1-2",
    "1-1",
  ]);
  await assert.rejects(client.xAdd("s", "1-1", { f: "v" }), /equal or smaller than the target/);
});

check("cap, delete and inspect a stream", async () => {
  for (let n = 1; n <= 300; n++) client.xAdd("s", `${n}-0`, { n: String(n) });
  const capped = { TRIM: { strategy: "MAXLEN", strategyModifier: "~", threshold: 150 } };
  await client.xAdd("s", "301-0", { n: "301" }, capped);
  assert.equal(await client.xLen("s"), 201); // whole blocks of 100
  assert.equal(await client.xTrim("s", "MINID", 299), 198);
  assert.equal(await client.xTrim("s", "MAXLEN", 2), 1);
  assert.equal(await client.xDel("s", ["300-0", "7-0"]), 1);
  const info = await client.xInfoStream("s");
  assert.equal(info.length, 1);
  assert.equal(info["entries-added"], 301);
  assert.equal(info["last-generated-id"], "301-0");
  assert.equal(info["max-deleted-entry-id"], "300-0");
  assert.equal(info["first-entry"].id, "301-0");
  assert.equal(info["last-entry"].message.n, "301");
});

check("read several streams", async () => {
  await client.xAdd("a", "1-0", { f: "a" });
  await client.xAdd("a", "2-0", { f: "b" });
  await client.xAdd("b", "5-0", { f: "c" });
  const wanted = [
    { key: "a", id: "1-0" },
    { key: "b", id: "0-0" },
  ];
  // As the server has it: pairs in RESP2, a map in RESP3; the client makes one shape of the first.
  const reply = await client.xRead(wanted, { COUNT: 10 });
  const shape = JSON.parse(JSON.stringify(reply));
  if (Array.isArray(shape)) {
    assert.deepEqual(shape, [
      { name: "a", messages: [{ id: "2-0", message: { f: "b" } }] },
      { name: "b", messages: [{ id: "5-0", message: { f: "c" } }] },
    ]);
  } else {
    assert.deepEqual(shape, {
      a: [["2-0", ["f", "b"]]],
      b: [["5-0", ["f", "c"]]],
    });
  }
  assert.equal(await client.xRead({ key: "a", id: "$" }), null);
});

check("block for an entry on a duplicated connection", async () => {
  const read = second.xRead({ key: "s", id: "$" }, { BLOCK: 5000, COUNT: 1 });
  await blocked();
  await client.xAdd("s", "7-7", { f: "v" });
  const reply = JSON.stringify(await read);
  assert.match(reply, /"7-7"/);
  assert.match(reply, /"v"/);
  assert.equal(await second.xRead({ key: "s", id: "$" }, { BLOCK: 20 }), null);
});

check("unblock a reader", async () => {
  const id = await second.clientId();
  const read = second.xRead({ key: "s", id: "$" }, { BLOCK: 0 });
  await blocked();
  assert.equal(await client.sendCommand(["CLIENT", "UNBLOCK", String(id)]), 1);
  assert.equal(await read, null);
});

check("messages", async () => {
  const reader = client.duplicate();
  await reader.connect();
  try {
    const seen = [];
    const note = (message, channel) => seen.push(`${channel} ${message}`);
    await reader.subscribe("news", note);
    await reader.pSubscribe("n*", note);
    await reader.sSubscribe("shard", note);
    assert.equal(await client.publish("news", "hello"), 2);
    assert.equal(await client.sPublish("shard", "there"), 1);
    await eventually(() => seen.length === 3, "messages");
    assert.deepEqual(seen.sort(), ["news hello", "news hello", "shard there"]);
    assert.deepEqual(await client.pubSubChannels(), ["news"]);
    assert.equal(await client.pubSubNumPat(), 1);
    // A RESP3 connection may do anything else meanwhile; in RESP2 the server refuses it.
    if (protocol === 3) assert.equal(await reader.set("k", "v"), "OK");
    else await assert.rejects(reader.set("k", "v"), /Can't execute 'set'/);
    await reader.unsubscribe("news");
    await reader.pUnsubscribe("n*");
    await reader.sUnsubscribe("shard");
    assert.equal(await client.publish("news", "nobody"), 0);
    assert.equal(String(await reader.ping()), "PONG");
  } finally {
    reader.destroy();
  }
});

check("a transaction", async () => {
  const replies = await client
    .multi()
    .set("k", "1")
    .incr("k")
    .xAdd("s", "1-1", { f: "v" })
    .xRange("s", "-", "+")
    .exec();
  assert.deepEqual(replies.slice(0, 3), ["OK", 2, "1-1"]);
  assert.equal(replies[3][0].message.f, "v");
});

check("a refused transaction changes nothing", async () => {
  await assert.rejects(client.multi().set("k", "v").addCommand(["XADD", "s"]).exec());
  assert.equal(await client.exists(["k", "s"]), 0);
});

check("one failed command leaves the rest of a transaction", async () => {
  const run = client.multi().set("k", "v").xAdd("k", "*", { f: "v" }).incr("n").exec();
  await assert.rejects(run, (error) => error.replies[1].message.startsWith("WRONGTYPE"));
  assert.equal(await client.get("n"), "1");
});

check("WATCH", async () => {
  await second.watch("k");
  await client.set("k", "changed");
  await assert.rejects(second.multi().set("k", "mine").exec(), WatchError);
  assert.equal(await client.get("k"), "changed");
  await second.watch("k");
  assert.deepEqual(await second.multi().set("k", "mine").exec(), ["OK"]);
});

check("a thousand commands at once", async () => {
  const ids = await Promise.all(
    Array.from({ length: 1000 }, (_, n) => client.xAdd("s", `${n + 1}-0`, { n: String(n) })),
  );
  assert.equal(ids.at(-1), "1000-0");
  assert.equal(await client.xLen("s"), 1000);
});

check("scripts and functions", async () => {
  const text = "return {KEYS[1], ARGV[1], redis.call('INCRBY', KEYS[1], ARGV[1])}";
  const options = { keys: ["counter"], arguments: ["5"] };
  assert.deepEqual(await client.eval(text, options), ["counter", "5", 5]);
  const sha = await client.scriptLoad(text);
  assert.deepEqual(await client.evalSha(sha, options), ["counter", "5", 10]);
  assert.deepEqual(await client.scriptExists([sha, "0".repeat(40)]), [1, 0]);
  await assert.rejects(client.evalSha("0".repeat(40), options), /NOSCRIPT/);
  await assert.rejects(client.eval("return redis.call('INCR')"), /Wrong number of args/);
  const library = "#!lua name=sums\nredis.register_function('twice', function(_, words) return 2 * words[1] end)";
  assert.equal(await client.functionLoad(library, { REPLACE: true }), "sums");
  assert.equal(await client.fCall("twice", { keys: [], arguments: ["21"] }), 42);
  assert.equal(await client.functionFlush(), "OK");
});

check("a cache of the client's own", { skip: protocol !== 3 }, async () => {
  const cached = createClient({ ...options, clientSideCache: { ttl: 0, maxEntries: 100 } });
  cached.on("error", () => {});
  await cached.connect();
  try {
    await client.set("k", "old");
    assert.equal(await cached.get("k"), "old");
    for (let n = 0; n < 100; n++) assert.equal(await cached.get("k"), "old");
    assert.match(await client.info("commandstats"), /cmdstat_client\|tracking:/);
    assert.match(await client.info("stats"), /tracking_total_keys:1\r/);
    await client.set("k", "new");
    await eventually(async () => (await cached.get("k")) === "new", "the new value");
    await cached.set("k", "its own");
    await eventually(async () => (await cached.get("k")) === "its own", "its own value");
    await client.flushAll();
    await eventually(async () => (await cached.get("k")) === null, "no value");
  } finally {
    cached.destroy();
  }
});

check("the client comes back when its connection is cut", async () => {
  const id = await second.clientId();
  assert.equal(await client.clientKill({ filter: "ID", id }), 1);
  await eventually(async () => {
    try {
      return (await second.clientId()) !== id;
    } catch {
      return false;
    }
  }, "a new connection");
});
