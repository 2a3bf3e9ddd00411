// A question on each line of standard input, its answer on a line of standard output: see ../programs.py.
'use strict';

const readline = require('node:readline');

/** Answer every question with what its verb does, one after the other. */
async function answer(verbs) {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const question = JSON.parse(line);
    let said;
    try {
      said = { answer: await verbs[question.verb](question) };
    } catch (error) {
      said = { failed: error.stack };
    }
    process.stdout.write(`${JSON.stringify(said)}\n`);
  }
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
