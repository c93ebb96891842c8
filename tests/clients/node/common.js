// What both scripts share. The server and the protocol come from the environment.
"use strict";

const { readFileSync } = require("node:fs");
const { test } = require("node:test");

const port = Number(process.env.HEADRACE_PORT);
const { HEADRACE_CA, HEADRACE_CERT, HEADRACE_KEY } = process.env;
// What an encrypted connection is made by; undefined for a plain one.
const tls = HEADRACE_CA && {
  ca: readFileSync(HEADRACE_CA),
  cert: readFileSync(HEADRACE_CERT),
  key: readFileSync(HEADRACE_KEY),
};
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
const check = (name, ...rest) =>
  test(name, { timeout: 10000, ...(rest.length > 1 ? rest[0] : {}) }, rest.at(-1));

module.exports = { check, eventually, port, protocol, tls };
