// Produce to a topic, and delete its records.

import { ask, toastLater } from "./dom.js";
import { refresh } from "./live.js";

const produce = document.querySelector("form[data-produce]");
const purge = document.querySelector("form[data-purge]");

function headers(text) {
  return text.split("\n").filter((line) => line.trim()).map((line) => {
    const at = line.indexOf(":");
    if (at < 1) throw new Error(`${line} is no header: write name: value`);
    return { name: line.slice(0, at).trim(), value: line.slice(at + 1).trim() };
  });
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`the value is no JSON: ${error.message}`);
  }
}

// A value for a schema. A browser rounds long numbers, and nobody would notice.
function exactly(text) {
  const value = parsed(text);
  const outside = text.replace(/"(?:[^"\\]|\\.)*"/g, "");
  for (const [number] of outside.matchAll(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g)) {
    const digits = number.replace(/[eE].*/, "").replace(/\D/g, "").replace(/^0+|0+$/g, "");
    const isExact = /^-?\d+$/.test(number) ? Number.isSafeInteger(Number(number)) : digits.length <= 15;
    if (!isExact) {
      throw new Error(`the browser would round ${number}: produce it with \`headrace produce\``);
    }
  }
  return value;
}

// The key as text, or by its schema; a key of a string schema need not be quoted.
function writtenKey(text) {
  if (text === "") return { key: null };
  if (!schemas.key) return { key: text, key_encoding: "text" };
  const isString = ['"string"', '{"type":"string"}'].includes(schemas.key.schema.replace(/\s/g, ""));
  return { key: isString ? text : exactly(text), key_encoding: "schema" };
}

// Without a schema the text is written as it was typed, to the last digit.
function written({ value, encoding, tombstone }) {
  if (tombstone.checked) return { value: null };
  if (encoding.value === "schema") return { value: exactly(value.value), encoding: "schema" };
  if (encoding.value === "json") parsed(value.value);
  return { value: value.value, encoding: encoding.value === "base64" ? "base64" : "text" };
}

async function send(fields) {
  const { key, partition } = fields;
  const answer = await ask("POST", produce.dataset.produce, {
    ...writtenKey(key.value),
    ...written(fields),
    headers: headers(fields.headers.value),
    ...(partition.value !== "" && { partition: Number(partition.value) }),
  });
  return answer.messages[0];
}

// A topic with a schema is written by it, unless somebody chooses something else.
let schemas = {};
produce.closest("dialog").addEventListener("opened", async () => {
  const option = produce.querySelector("option[value=schema]");
  const button = produce.querySelector("button[type=submit]");
  button.disabled = true;
  schemas = {};
  for (const part of ["value", "key"]) {
    const subject = `${produce.dataset.topic}-${part}`;
    try {
      const subjects = await ask("GET", `/subjects?subjectPrefix=${encodeURIComponent(subject)}`);
      if (subjects.includes(subject)) schemas[part] = await ask("GET", `/subjects/${encodeURIComponent(subject)}/versions/latest`);
    } catch { /* then there is no registry to write by */ }
  }
  const { value, key } = schemas;
  if (value && option.disabled) produce.elements.encoding.value = "schema";
  option.disabled = !value;
  if (value) option.textContent = `by ${value.subject}, version ${value.version}`;
  else if (produce.elements.encoding.value === "schema") produce.elements.encoding.value = "text";
  produce.querySelector(".key-schema").textContent = key ? `by ${key.subject}, version ${key.version}` : "";
  button.disabled = false;
});

produce.addEventListener("submit", async (event) => {
  event.preventDefault();
  const problem = produce.querySelector(".problem");
  const well = produce.querySelector(".well");
  problem.textContent = well.textContent = "";
  try {
    const { partition, offset } = await send(produce.elements);
    well.textContent = `Written to partition ${partition} at offset ${offset}.`;
    refresh();
    document.dispatchEvent(new CustomEvent("produced"));
  } catch (error) {
    problem.textContent = error.message;
  }
});

produce.elements.tombstone.addEventListener("change", () => {
  produce.elements.value.disabled = produce.elements.tombstone.checked;
});

purge.addEventListener("submit", async (event) => {
  event.preventDefault();
  const { partition, before } = purge.elements;
  const every = JSON.parse(purge.parentElement.querySelector(".indexes").textContent);
  const wanted = partition.value === "" ? every : [Number(partition.value)];
  const offset = before.value === "" ? -1 : Number(before.value);
  try {
    await ask("DELETE", purge.dataset.purge, { before: Object.fromEntries(wanted.map((each) => [each, offset])) });
    toastLater(before.value === "" && partition.value === "" ? purge.dataset.said : "The records are deleted");
    location.reload();
  } catch (error) {
    purge.querySelector(".problem").textContent = error.message;
  }
});
