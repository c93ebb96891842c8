// redis-memory-server as its README has it, with REDISMS_SYSTEM_BINARY.
const { RedisMemoryServer } = require("redis-memory-server");
const { createClient } = require("redis");

(async () => {
  const server = new RedisMemoryServer();
  const socket = { host: await server.getHost(), port: await server.getPort() };
  const client = await createClient({ socket }).connect();
  await client.xAdd("stream", "*", { field: "value" });
  console.log("entries", await client.xLen("stream"));
  await client.close();
  console.log("stopped", await server.stop());
})();
