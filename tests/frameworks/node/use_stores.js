// connect-redis, keyv and redis-semaphore: `before` a restart of the server, and `after`.
"use strict";

const assert = require("node:assert/strict");
const fs = require("node:fs");
const { createKeyv } = require("@keyv/redis");
const { RedisStore } = require("connect-redis");
const express = require("express");
const session = require("express-session");
const Redis = require("ioredis");
const { createClient } = require("redis");
const semaphores = require("redis-semaphore");
const { port } = require("./told.js");

const url = `redis://127.0.0.1:${port}`;
const cookieFile = `${process.env.HEADRACE_TOLD}.cookie`;

/** A site that counts the visits of each session. */
const siteOf = (store) => {
  const site = express();
  site.use(session({ store, secret: "secret", resave: false, saveUninitialized: false }));
  site.get("/", (request, response) => {
    request.session.visits = (request.session.visits ?? 0) + 1;
    response.json(request.session.visits);
  });
  site.get("/leave", (request, response) => request.session.destroy(() => response.json(0)));
  return new Promise((resolve) => {
    const listener = site.listen(0, "127.0.0.1", () => resolve(listener));
  });
};

const sessions = async (moment) => {
  const client = createClient({ url });
  await client.connect();
  const store = new RedisStore({ client, prefix: "site:" });
  const listener = await siteOf(store);
  const visit = async (path, cookie) => {
    const address = `http://127.0.0.1:${listener.address().port}${path}`;
    const response = await fetch(address, { headers: cookie ? { cookie } : {} });
    return [await response.json(), response.headers.get("set-cookie")];
  };
  if (moment === "before") {
    const [visits, cookie] = await visit("/");
    assert.equal(visits, 1);
    assert.deepEqual((await visit("/", cookie))[0], 2);
    fs.writeFileSync(cookieFile, cookie);
    await visit("/"); // of somebody else
    assert.ok((await client.ttl((await client.keys("site:*"))[0])) > 80000);
  } else {
    const cookie = fs.readFileSync(cookieFile, "utf8");
    assert.deepEqual((await visit("/", cookie))[0], 3);
    assert.equal(await store.length(), 2);
    assert.deepEqual((await store.all()).map((one) => one.visits).sort(), [1, 3]);
    await visit("/leave", cookie);
    assert.equal(await store.length(), 1);
    await store.clear();
    assert.deepEqual(await client.keys("site:*"), []);
  }
  listener.close();
  listener.closeAllConnections();
  await client.close();
};

const values = async (moment) => {
  const keyv = createKeyv(url, { namespace: "kept" });
  const others = createKeyv(url, { namespace: "others" });
  if (moment === "before") {
    await keyv.set("object", { a: [1, null] });
    await keyv.set("long", "v", 1000000);
    await keyv.set("brief", "v", 1);
    await others.setMany([{ key: "one", value: 1 }, { key: "two", value: 2, ttl: 1000000 }]);
  } else {
    assert.deepEqual(await keyv.get(["object", "long", "brief"]), [{ a: [1, null] }, "v", undefined]);
    assert.deepEqual(await others.has(["one", "three"]), [true, false]);
    const found = [];
    for await (const [key, value] of keyv.iterator()) found.push([key, value]);
    assert.deepEqual(found.sort(), [["long", "v"], ["object", { a: [1, null] }]]);
    assert.equal(await keyv.delete("long"), true);
    await keyv.clear();
    assert.equal(await keyv.get("object"), undefined);
    assert.equal(await others.get("two"), 2);
  }
  await Promise.all([keyv.disconnect(), others.disconnect()]);
};

const locks = async (moment) => {
  const client = new Redis(port, "127.0.0.1");
  const once = { acquireAttemptsLimit: 1, refreshInterval: 0 };
  const long = { lockTimeout: 1000000, ...once };
  const mutex = () => new semaphores.Mutex(client, "m", { ...long, identifier: moment });
  const place = (identifier) => new semaphores.Semaphore(client, "s", 2, { ...long, identifier });
  const places = (count) => new semaphores.MultiSemaphore(client, "n", 5, count, long);
  const quorum = () => new semaphores.RedlockMutex([client], "q", long);
  if (moment === "before") {
    await mutex().acquire();
    await place("one").acquire();
    await place("two").acquire();
    assert.equal(await place("three").tryAcquire(), false);
    await places(3).acquire();
    await quorum().acquire();
    const brief = new semaphores.Mutex(client, "brief", { lockTimeout: 200, refreshInterval: 50 });
    await brief.acquire();
    const deadline = Date.now() + 300; // later than it would end if nobody refreshed it
    while (Date.now() < deadline) {
      assert.equal(await client.exists("mutex:brief"), 1);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await brief.release();
    assert.equal(await client.exists("mutex:brief"), 0);
  } else {
    assert.equal(await mutex().tryAcquire(), false);
    assert.equal(await place("three").tryAcquire(), false);
    assert.equal(await places(3).tryAcquire(), false);
    assert.equal(await places(2).tryAcquire(), true);
    assert.equal(await quorum().tryAcquire(), false);
    const again = new semaphores.Mutex(client, "m", {
      ...long,
      identifier: "before",
      acquiredExternally: true,
    });
    assert.equal(await again.tryAcquire(), true); // who knows its name may take it over
    await again.release();
    assert.equal(await mutex().tryAcquire(), true);
  }
  client.disconnect();
};

const main = async (moment) => {
  await sessions(moment);
  await values(moment);
  await locks(moment);
};

main(process.argv[2]).catch((error) => {
  console.error(error);
  process.exit(1);
});
