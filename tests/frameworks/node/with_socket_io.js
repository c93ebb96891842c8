// Socket.IO servers that share rooms through Redis. `work NAME` is one of them with a client of its
// own, which tells what it hears; `produce N M` sends N to all clients, of which there have to be M.
"use strict";

const assert = require("node:assert/strict");
const http = require("node:http");
const redisAdapter = require("@socket.io/redis-adapter");
const streamsAdapter = require("@socket.io/redis-streams-adapter");
const { createClient } = require("redis");
const { Server } = require("socket.io");
const { io: connect } = require("socket.io-client");
const { port, tell } = require("./told.js");

const clientOf = async () => {
  const client = createClient({ url: `redis://127.0.0.1:${port}` });
  client.on("error", () => {});
  await client.connect();
  return client;
};

const ADAPTERS = {
  pubsub: async (client) => redisAdapter.createAdapter(client, await clientOf()),
  sharded: async (client) => redisAdapter.createShardedAdapter(client, await clientOf()),
  streams: async (client) => streamsAdapter.createAdapter(client, { blockTimeInMs: 200 }),
};

const serve = async () => {
  const adapter = await ADAPTERS[process.env.HEADRACE_ADAPTER](await clientOf());
  const listener = http.createServer();
  const server = new Server(listener, { adapter, connectionStateRecovery: {} });
  await new Promise((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return [server, listener.address().port];
};

const until = async (condition) => {
  const deadline = Date.now() + 30000;
  while (!(await condition().catch(() => false))) {
    assert.ok(Date.now() < deadline, condition.toString());
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
};

/** Send a number to all, to one room, and ask everybody about it. */
const produce = async (number, clients) => {
  const [server] = await serve();
  await until(async () => (await server.fetchSockets()).length === clients);
  server.emit("heard", number);
  server.to(`room-${number % 2}`).emit("room", number);
  const replies = await server.timeout(10000).emitWithAck("asked", number);
  assert.deepEqual(replies, Array(clients).fill(number * 2));
  server.socketsJoin("late");
  await until(async () => (await server.in("late").fetchSockets()).length === clients);
  process.exit(0);
};

const work = async (parity) => {
  const [server, own] = await serve();
  server.on("connection", (socket) => socket.join(`room-${parity}`));
  const client = connect(`http://127.0.0.1:${own}`, { transports: ["websocket"] });
  client.on("heard", (number) => tell(`heard-${parity} ${number}`));
  client.on("room", (number) => tell(`room-${parity} ${number}`));
  client.on("asked", (number, reply) => reply(number * 2));
};

const [what, first, second] = process.argv.slice(2);
(what === "produce" ? produce(Number(first), Number(second)) : work(Number(first))).catch((error) => {
  console.error(error);
  process.exit(1);
});
