// redlock, rate-limiter-flexible and commands of ioredis: `before` a restart, and `after`.
"use strict";

const assert = require("node:assert/strict");
const Redis = require("ioredis");
const Redlock = require("redlock");
const limiters = require("rate-limiter-flexible");
const { port } = require("./told.js");

const client = new Redis(port, "127.0.0.1");
const redlock = new Redlock([client], { retryCount: 0 });
const limiter = new limiters.RateLimiterRedis({ storeClient: client, points: 3, duration: 1000 });
const bursts = new limiters.BurstyRateLimiter(
  new limiters.RateLimiterRedis({ storeClient: client, points: 1, duration: 1000, keyPrefix: "s" }),
  new limiters.RateLimiterRedis({ storeClient: client, points: 1, duration: 1000, keyPrefix: "b" }),
);
client.defineCommand("raise", {
  numberOfKeys: 1,
  lua: "local n = redis.call('INCRBY', KEYS[1], ARGV[1]) return {n, redis.status_reply('OK')}",
});

const before = async () => {
  await redlock.lock("kept", 1000000);
  await assert.rejects(redlock.lock("kept", 1000));
  const brief = await redlock.lock("brief", 10000);
  await (await brief.extend(20000)).unlock();
  assert.equal(await client.exists("brief"), 0);
  for (const left of [2, 1, 0]) {
    assert.equal((await limiter.consume("somebody")).remainingPoints, left);
  }
  await assert.rejects(limiter.consume("somebody"), (refusal) => refusal.msBeforeNext > 0);
  await bursts.consume("somebody");
  await bursts.consume("somebody");
  await assert.rejects(bursts.consume("somebody"));
  assert.deepEqual(await client.raise("n", 5), [5, "OK"]);
};

const after = async () => {
  await assert.rejects(redlock.lock("kept", 1000));
  await assert.rejects(limiter.consume("somebody"));
  await limiter.reward("somebody", 4);
  await limiter.consume("somebody");
  assert.deepEqual(await client.raise("n", 5), [10, "OK"]);
  const replies = await client.multi().raise("n", 1).raise("n", 1).exec();
  assert.deepEqual(replies, [[null, [11, "OK"]], [null, [12, "OK"]]]);
  await client.script("FLUSH"); // it is sent again
  assert.deepEqual(await client.raise("n", 1), [13, "OK"]);
};

(process.argv[2] === "before" ? before : after)().then(
  () => client.disconnect(),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
