// What a program tells the test that runs it, as programs/told.py does.
"use strict";

const fs = require("node:fs");

const port = Number(process.env.HEADRACE_PORT);
const holds = process.env.HEADRACE_HOLDS === "1";
const fails = process.env.HEADRACE_FAILS;

/** Append a line, whole. */
const tell = (line) => fs.appendFileSync(process.env.HEADRACE_TOLD, `${process.pid} ${line}\n`);

/** A job begins; in a worker that is to be killed it goes no further. */
const begin = async (number) => {
  tell(`begun ${number}`);
  if (holds) await new Promise(() => {});
};

/** Job 0 is one that nobody can do, if the test says so: it throws, or it kills its worker. */
const fail = (number) => {
  if (number === 0 && fails === "kills") process.kill(process.pid, "SIGKILL");
  if (number === 0 && fails === "raises") throw new Error("nobody can do this");
};

/** Do what the command line says: `produce N`, or `work` until somebody ends the process. */
const main = async (produce, work) => {
  const numbers = process.argv.slice(3).map(Number);
  if (process.argv[2] === "produce") {
    await produce(...numbers);
    process.exit(0);
  }
  await work(...numbers);
};

module.exports = { begin, fail, main, port, tell };
