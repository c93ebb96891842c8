// express-rate-limit with its store in Redis: `before` a restart of the server, and `after`.
"use strict";

const assert = require("node:assert/strict");
const express = require("express");
const { rateLimit } = require("express-rate-limit");
const { RedisStore } = require("rate-limit-redis");
const { createClient } = require("redis");
const { port } = require("./told.js");

const main = async (moment) => {
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  await client.connect();
  const store = new RedisStore({ sendCommand: (...words) => client.sendCommand(words) });
  const site = express();
  const keyGenerator = (request) => request.get("who");
  site.use(rateLimit({ windowMs: 1000000, limit: 3, standardHeaders: "draft-6", store, keyGenerator }));
  site.get("/", (request, response) => response.json("welcome"));
  const listener = await new Promise((resolve) => {
    const opened = site.listen(0, "127.0.0.1", () => resolve(opened));
  });
  const visit = async (who) => {
    const response = await fetch(`http://127.0.0.1:${listener.address().port}/`, { headers: { who } });
    return [response.status, response.headers.get("ratelimit-remaining")];
  };
  if (moment === "before") {
    const found = [];
    for (let number = 0; number < 4; number += 1) found.push(await visit("one"));
    assert.deepEqual(found, [[200, "2"], [200, "1"], [200, "0"], [429, "0"]]);
    assert.deepEqual(await visit("two"), [200, "2"]);
  } else {
    assert.deepEqual(await visit("one"), [429, "0"]);
    assert.deepEqual(await visit("two"), [200, "1"]);
    assert.equal((await store.get("two")).totalHits, 2);
    await store.decrement("two");
    assert.deepEqual(await visit("two"), [200, "1"]);
    await client.sendCommand(["SCRIPT", "FLUSH"]); // it is sent again
    await store.resetKey("one");
    assert.deepEqual(await visit("one"), [200, "2"]);
  }
  listener.close();
  listener.closeAllConnections();
  await client.close();
};

main(process.argv[2]).catch((error) => {
  console.error(error);
  process.exit(1);
});
