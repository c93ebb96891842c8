// ioredis and node-redis, as clients of a cluster of one node.
"use strict";

const assert = require("node:assert/strict");
const { after } = require("node:test");
const Redis = require("ioredis");
const { createCluster } = require("redis");
const { check, eventually, port, protocol } = require("./common.js");

const iocluster = new Redis.Cluster([{ host: "127.0.0.1", port }], { scaleReads: "slave" });
const cluster = createCluster({
  rootNodes: [{ url: `redis://127.0.0.1:${port}` }],
  defaults: { RESP: protocol },
});

after(async () => {
  iocluster.disconnect();
  await cluster.close();
});

check("ioredis finds the node and its slots", async () => {
  await iocluster.set("a", "1");
  await iocluster.set("b", "2");
  assert.equal(await iocluster.get("a"), "1");
  assert.deepEqual(await iocluster.mget("{t}a", "{t}b"), [null, null]);
  assert.equal(iocluster.nodes("master").length, 1);
  const replies = await iocluster.pipeline().set("{t}a", 1).incr("{t}a").exec();
  assert.deepEqual(replies, [[null, "OK"], [null, 2]]);
  iocluster.defineCommand("both", { numberOfKeys: 2, lua: "return {KEYS[1], KEYS[2], ARGV[1]}" });
  assert.deepEqual(await iocluster.both("{t}a", "{t}b", "c"), ["{t}a", "{t}b", "c"]);
});

check("ioredis subscribes in shards", async () => {
  const subscriber = new Redis.Cluster([{ host: "127.0.0.1", port }], { shardedSubscribers: true });
  const seen = [];
  subscriber.on("smessage", (channel, message) => seen.push([channel, message]));
  try {
    await subscriber.ssubscribe("news");
    await eventually(async () => (await iocluster.spublish("news", "hello")) === 1, "subscribed");
    await eventually(async () => seen.length > 0, "heard");
    assert.deepEqual(seen[0], ["news", "hello"]);
  } finally {
    subscriber.disconnect();
  }
});

check("node-redis finds the node and its slots", async () => {
  await cluster.connect();
  await cluster.set("c", "3");
  assert.equal(await cluster.get("c"), "3");
  assert.deepEqual(await cluster.mGet(["{u}a", "{u}b"]), [null, null]);
  assert.equal(cluster.masters.length, 1);
  assert.deepEqual(await cluster.multi().set("{u}a", "1").get("{u}a").exec(), ["OK", "1"]);
  const added = await cluster.xAdd("s", "*", { f: "v" });
  assert.equal((await cluster.xRange("s", "-", "+"))[0].id, added);
});
