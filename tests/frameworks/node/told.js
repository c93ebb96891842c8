// What a program tells the test that runs it, as programs/told.py does.
"use strict";

const fs = require("node:fs");

const port = Number(process.env.HEADRACE_PORT);
const holds = process.env.HEADRACE_HOLDS === "1";

/** Append a line, whole. */
const tell = (line) => fs.appendFileSync(process.env.HEADRACE_TOLD, `${process.pid} ${line}\n`);

/** A job begins; in a worker that is to be killed it goes no further. */
const begin = async (number) => {
  tell(`begun ${number}`);
  if (holds) await new Promise(() => {});
};

/** Do what the command line says: `produce N`, or `work` until somebody ends the process. */
const main = async (produce, work) => {
  if (process.argv[2] === "produce") {
    await produce(Number(process.argv[3]));
    process.exit(0);
  }
  await work();
};

module.exports = { begin, main, port, tell };
