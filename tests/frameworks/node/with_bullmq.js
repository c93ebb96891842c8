// Jobs of BullMQ: with priorities, delays and a flow. `produce N` makes some, `work` does them.
"use strict";

const { Queue, QueueEvents, Worker } = require("bullmq");
const { begin, main, port, tell } = require("./told.js");

const connection = { host: "127.0.0.1", port, maxRetriesPerRequest: null };

const produce = async (count) => {
  const queue = new Queue("jobs", { connection });
  const jobs = [];
  for (let number = 0; number < count; number += 1) {
    const opts = { jobId: `job-${number}`, priority: number % 3, delay: number % 4 ? 0 : 100 };
    jobs.push({ name: "job", data: { number }, opts });
  }
  await queue.addBulk(jobs);
  await queue.add("job", { number: 0 }, { jobId: "job-0" }); // the same once more: it is one job
  await queue.close();
};

const work = async () => {
  const events = new QueueEvents("jobs", { connection });
  await events.waitUntilReady();
  const job = async ({ data }) => {
    await begin(data.number);
    return data.number * 2;
  };
  const times = { lockDuration: 1000, stalledInterval: 500, concurrency: 2 };
  const worker = new Worker("jobs", job, { connection, ...times });
  worker.on("completed", ({ data }) => tell(`done ${data.number}`));
  worker.on("error", () => {});
};

main(produce, work);
