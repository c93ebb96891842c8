// Messages of Moleculer's channels on a stream with policies: `produce N` sends, `work` takes them.
"use strict";

const { ServiceBroker } = require("moleculer");
const { Middleware } = require("@moleculer/channels");
const { begin, fail, main, port, tell } = require("./told.js");

const start = async (maxInFlight = 1) => {
  // `minIdleTime` stays an hour: until then its own XAUTOCLAIM takes nothing. After `maxRetries`
  // it would take away what has failed, and without them acknowledge it.
  const options = { redis: { host: "127.0.0.1", port }, maxInFlight, maxRetries: 1000 };
  const middlewares = [Middleware({ adapter: { type: "Redis", options } })];
  const logger = { type: "Console", options: { level: "warn" } };
  const broker = new ServiceBroker({ logger, middlewares });
  await broker.start();
  return broker;
};

const produce = async (count, customers = 0) => {
  const broker = await start();
  for (let number = 0; number < count; number += 1) {
    // Headers are a field of their own, the same bytes for the same headers.
    const more = customers ? { headers: { customer: `${number % customers}` } } : {};
    await broker.sendToChannel("jobs", { number }, more);
  }
};

const handler = async ({ number }) => {
  await begin(number);
  fail(number);
  await new Promise((resolve) => setTimeout(resolve, 50));
  tell(`done ${number}`);
};

const work = async (atOnce) => {
  const broker = await start(atOnce);
  broker.createService({ name: "worker", channels: { jobs: { group: "workers", handler } } });
};

main(produce, work);
