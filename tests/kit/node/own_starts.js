// Starts a redis-server as the suites of node-redis and ioredis start theirs, asks what they ask,
// and ends it as they do. Arguments: the program, a folder, three free ports.
"use strict";

const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const { once } = require("node:events");
const { existsSync, statSync, writeFileSync } = require("node:fs");
const net = require("node:net");
const os = require("node:os");
const path = require("node:path");
const Redis = require("ioredis");
const { createClient } = require("redis");
const oldRedis = require("redis-3"); // the version whose suite has a process and files of its own

const [program, folder, ...ports] = process.argv.slice(2);
const [one, other, third] = ports.map(Number);
const addresses = Object.values(os.networkInterfaces()).flat();
const hosts = ["127.0.0.1", "::1"].filter((host) => addresses.some((each) => each.address === host));
const PATIENCE_MS = 60000;
const PASSWORD = "open-sesame";
const NO_RETRY = { maxRetriesPerRequest: 0, retryStrategy: () => null };
const started = [];
process.on("exit", () => started.forEach((each) => each.kill("SIGKILL")));

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const socketOf = (port) => path.join(folder, `redis${port}.sock`);

/** Wait for an event; not for ever. */
const soon = (emitter, event) => once(emitter, event, { signal: AbortSignal.timeout(PATIENCE_MS) });

async function eventually(condition, what) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    assert.ok(Date.now() < deadline, `not in time: ${what}`);
    await sleep(20);
  }
}

/** Whether a server listens there. */
async function answers(place) {
  const socket = net.connect(place);
  try {
    await once(socket, "connect");
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Where node-redis expects a server: at each address, and at a Unix socket. */
const places = (port) => [...hosts.map((host) => ({ host, port })), { path: socketOf(port) }];

const open = (port) => Promise.all(places(port).map(answers));

function run(...words) {
  const server = spawn(program, words, { cwd: folder, stdio: "ignore" });
  started.push(server);
  return server;
}

/** node-redis: a file of configuration alone, and a wait for all of its places. */
async function start(port, ...lines) {
  const file = path.join(folder, `${port}.conf`);
  const usual = [
    `port ${port}`,
    `bind ${hosts.join(" ")}`,
    `unixsocket ${socketOf(port)}`,
    "unixsocketperm 700",
    'save ""',
  ];
  writeFileSync(file, [...lines, ...usual].join("\n")); // with no end of the last line
  const server = run(file);
  server.port = port;
  await eventually(async () => {
    assert.equal(server.exitCode, null, "it has ended");
    return (await open(port)).every(Boolean);
  }, `a server at ${port}`);
  return server;
}

/** SIGTERM; the code is 0, and nothing of it is left. */
async function stop(server) {
  const ended = soon(server, "exit");
  server.kill("SIGTERM");
  assert.deepEqual(await ended, [0, null]);
  assert.ok(!(await open(server.port)).some(Boolean));
  assert.ok(!existsSync(socketOf(server.port)));
}

/** A call of a client that has callbacks. */
const call = (client, name, ...words) =>
  new Promise((done, fail) =>
    client[name](...words, (error, reply) => (error ? fail(error) : done(reply))),
  );

async function plain() {
  const server = await start(one);
  assert.equal(statSync(socketOf(one)).mode & 0o777, 0o700);
  for (const place of places(one)) {
    const client = oldRedis.createClient(place);
    const value = JSON.stringify(place);
    await soon(client, "ready");
    assert.equal(client.server_info.versions.length, 3);
    assert.equal(await call(client, "set", "k", value), "OK");
    const newer = new Redis(place);
    assert.equal(await newer.get("k"), value);
    assert.equal(await call(client, "quit"), "OK");
    assert.equal(await newer.quit(), "OK");
  }
  await stop(server);
}

async function password() {
  const server = await start(one, `requirepass ${PASSWORD}`);
  const socket = { port: one };
  const client = await createClient({ socket, password: PASSWORD }).connect();
  assert.equal(await client.set("k", "v"), "OK");
  client.destroy();
  const wrong = createClient({ socket: { ...socket, reconnectStrategy: false }, password: "w" });
  await assert.rejects(wrong.on("error", () => {}).connect(), /^Error: WRONGPASS /);
  const silent = new Redis(one, { ...NO_RETRY, enableReadyCheck: false });
  await assert.rejects(silent.get("k"), /NOAUTH Authentication required/);
  silent.disconnect();
  const old = oldRedis.createClient(one, { password: PASSWORD });
  assert.equal(await call(old, "get", "k"), "v");
  old.end(true);
  await stop(server);
}

async function replica() {
  const master = await start(one, `requirepass ${PASSWORD}`, "repl-diskless-sync-delay 1");
  const writer = new Redis(one, { password: PASSWORD });
  await writer.mset(...Array.from({ length: 2000 }, (_, n) => (n % 2 ? "v".repeat(500) : `k${n}`)));
  const copy = await start(other, `slaveof localhost ${one}`, `masterauth ${PASSWORD}`);
  const seen = new Set();
  const client = oldRedis.createClient(other);
  const info = client.info.bind(client);
  client.info = (done) =>
    info((error, text) => {
      seen.add(client.server_info.master_link_status);
      done(error, text);
    });
  await soon(client, "ready"); // both wait for the link with the master
  assert.match([...seen].join(), /^(down,)?up$/); // up at once where this machine is slow
  assert.equal(await call(client, "get", "k1998"), "v".repeat(500));
  client.end(true);
  const reader = new Redis(other);
  assert.deepEqual((await reader.role()).slice(0, 4), ["slave", "localhost", one, "connected"]);
  await assert.rejects(reader.set("k", "v"), /^ReplyError: READONLY /);
  reader.disconnect();
  writer.disconnect();
  await Promise.all([stop(copy), stop(master)]);
}

async function renamed() {
  const names = { set: "807081f5", get: "f397808a", getrange: "9e3102b1" };
  const lines = Object.entries(names).map(([name, to]) => `rename-command ${name.toUpperCase()} ${to}`);
  const server = await start(one, ...lines);
  const client = oldRedis.createClient(one, { rename_commands: names });
  assert.equal(await call(client, "set", "k", "value"), "OK");
  assert.equal(await call(client, "getrange", "k", 1, -1), "alue");
  client.end(true);
  const newer = await createClient({ socket: { port: one } }).connect();
  await assert.rejects(newer.get("k"), /ERR unknown command 'GET'/);
  assert.equal(await newer.sendCommand(["f397808a", "k"]), "value");
  newer.destroy();
  await stop(server);
}

/** node-redis 5 and ioredis: options alone, a wait for the port, and SIGKILL at the end. */
async function options() {
  const debug = ["--enable-debug-command", "yes", "--protected-mode", "no"];
  const server = run("--port", String(third), "--requirepass", PASSWORD, "--save", "", ...debug);
  await eventually(() => answers({ port: third }), `a server at ${third}`);
  const socket = { port: third };
  const client = await createClient({ RESP: 3, socket, password: PASSWORD }).connect();
  assert.equal(await client.sendCommand(["DEBUG", "SLEEP", "0"]), "OK");
  assert.equal(await client.configGet("save").then((found) => found.save), "");
  client.on("error", () => {});
  const cleaner = new Redis(third, { password: PASSWORD }); // after each test of ioredis
  const cleaned = await cleaner.pipeline().flushall().script("FLUSH").client("KILL", "normal").exec();
  assert.deepEqual(cleaned.slice(0, 2), [[null, "OK"], [null, "OK"]]);
  await eventually(async () => (await client.ping().catch(() => "")) === "PONG", "another connection");
  client.destroy();
  cleaner.disconnect();
  const ended = soon(server, "exit");
  server.kill("SIGKILL");
  assert.deepEqual(await ended, [null, "SIGKILL"]);
}

/** node-redis takes any code but 0 for a start that has failed. */
async function refused() {
  const taken = await start(one);
  const file = path.join(folder, "refused.conf");
  for (const lines of ["no-such-parameter yes", `port ${one}\nbind ${hosts.join(" ")}`]) {
    writeFileSync(file, lines);
    assert.deepEqual(await soon(run(file), "exit"), [1, null]);
  }
  await stop(taken);
}

(async () => {
  for (const part of [plain, password, replica, renamed, options, refused]) {
    await part();
    console.log(part.name);
  }
})();
