// Jobs of Bull. `produce N` makes some, `work` does them.
"use strict";

const Queue = require("bull");
const { begin, main, port, tell } = require("./told.js");

const queue = new Queue("jobs", {
  redis: { host: "127.0.0.1", port },
  settings: { lockDuration: 1000, lockRenewTime: 300, stalledInterval: 500 },
});
queue.on("error", () => {});

const produce = async (count) => {
  const jobs = [];
  for (let number = 0; number < count; number += 1) {
    const opts = { jobId: `job-${number}`, priority: 1 + (number % 3), delay: number % 4 ? 0 : 50 };
    jobs.push({ data: { number }, opts });
  }
  await queue.addBulk(jobs);
  await queue.close();
};

const work = async () => {
  queue.on("completed", ({ data }) => tell(`done ${data.number}`));
  queue.process(1, async ({ data }) => {
    await begin(data.number);
    return data.number * 2;
  });
};

main(produce, work);
