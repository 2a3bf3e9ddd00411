// One question on standard input, its answer on standard output, both JSON: see ../programs.py.
'use strict';

const fs = require('node:fs');

/** Answer with what the verb of the question does; whatever goes wrong ends the program with a trace. */
async function answer(verbs) {
  const question = JSON.parse(fs.readFileSync(0, 'utf8'));
  process.stdout.write(JSON.stringify(await verbs[question.verb](question)));
}

/** The number by which a call was refused, or a complaint that it was not. */
async function refusal(call) {
  try {
    await call();
  } catch (error) {
    const number = error.errorCode ?? error.status;
    if (number === undefined) throw error;
    return number;
  }
  return 'it was not refused';
}

module.exports = { answer, refusal };
