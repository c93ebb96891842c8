// Jobs of bee-queue. `produce N` makes some, `work` does them.
"use strict";

const Queue = require("bee-queue");
const { begin, main, port, tell } = require("./told.js");

const queue = new Queue("jobs", {
  redis: { host: "127.0.0.1", port },
  activateDelayedJobs: true,
  stallInterval: 500,
});
queue.on("error", () => {});

const produce = async (count) => {
  for (let number = 0; number < count; number += 1) {
    const job = queue.createJob({ number }).setId(`job-${number}`);
    if (number % 4 === 0) job.delayUntil(Date.now() + 50);
    await job.save();
  }
  await queue.close();
};

const work = async () => {
  queue.checkStalledJobs(300, () => {});
  queue.on("succeeded", (job) => tell(`done ${job.data.number}`));
  queue.process(1, async (job) => {
    await begin(job.data.number);
    return job.data.number * 2;
  });
};

main(produce, work);
