// Writes XADD with WAIT 1 wherever the sentinels say the master is, and tells what is answered.
// HEADRACE_SENTINELS: their ports; HEADRACE_TOLD: a line for each value that has an ID ("added") or
// that a replica has, too ("promised").

const fs = require("node:fs");
const Redis = require("ioredis");

const client = new Redis({
  sentinels: process.env.HEADRACE_SENTINELS.split(",").map((port) => ({ host: "127.0.0.1", port })),
  name: "mine",
  sentinelRetryStrategy: () => 50,
  retryStrategy: () => 50,
  maxRetriesPerRequest: 0,
  commandTimeout: 2000,
  reconnectOnError: (error) => /^(READONLY|UNBLOCKED)/.test(error.message),
});
client.on("error", () => {}); // what fails is tried again

function tell(word, value) {
  fs.appendFileSync(process.env.HEADRACE_TOLD, `${word} ${value}\n`);
}

async function write(value) {
  try {
    await client.xadd("s", "*", "n", value);
    tell("added", value);
    if ((await client.wait(1, 1000)) >= 1) tell("promised", value);
  } catch {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

(async () => {
  for (let number = 0; ; number++) await write(`ioredis-${number}`);
})();
