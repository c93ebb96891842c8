// What both scripts share. The server and the protocol come from the environment.
"use strict";

const { test } = require("node:test");

const port = Number(process.env.HEADRACE_PORT);
const protocol = Number(process.env.HEADRACE_PROTOCOL);

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** Wait until `condition` holds; fail when it does not in time. */
async function eventually(condition, what) {
  const deadline = Date.now() + 5000;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not in time: ${what}`);
    await sleep(5);
  }
}

/** A test that ends, and so does not keep the others waiting. */
const check = (name, body) => test(name, { timeout: 10000 }, body);

module.exports = { check, eventually, port, protocol };
