// Produce to a topic, and delete its records.

import { ask, toastLater } from "./dom.js";
import { refresh } from "./live.js";

const produce = document.querySelector("form[data-produce]");
const purge = document.querySelector("form[data-purge]");

let schema = null;  // the latest schema of the topic's values, if there is one

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

// Produce by our own API: the text is written as it was typed, to the last digit.
async function plainly(fields) {
  const { key, partition, value, encoding, tombstone } = fields;
  if (encoding.value === "json" && !tombstone.checked) parsed(value.value);
  const answer = await ask("POST", produce.dataset.produce, {
    key: key.value === "" ? null : key.value,
    key_encoding: "text",
    value: tombstone.checked ? null : value.value,
    encoding: encoding.value === "base64" ? "base64" : "text",
    headers: headers(fields.headers.value),
    ...(partition.value !== "" && { partition: Number(partition.value) }),
  });
  return answer.messages[0];
}

// Produce by the REST proxy, which encodes by schemas.
async function bySchema(fields) {
  const { key, partition, value } = fields;
  const { data: [{ cluster_id: cluster }] } = await ask("GET", "/v3/clusters");
  const bytes = (text) => btoa(String.fromCharCode(...new TextEncoder().encode(text)));
  const answer = await ask("POST", `/v3/clusters/${encodeURIComponent(cluster)}/topics/${encodeURIComponent(produce.dataset.topic)}/records`, {
    ...(key.value !== "" && { key: { type: "STRING", data: key.value } }),
    value: { schema_id: schema.id, data: parsed(value.value) },
    headers: headers(fields.headers.value).map((each) => ({ name: each.name, value: bytes(each.value) })),
    ...(partition.value !== "" && { partition_id: Number(partition.value) }),
  });
  if (answer.error_code !== 200) throw new Error(answer.message);
  return { partition: answer.partition_id, offset: answer.offset };
}

produce.closest("dialog").addEventListener("opened", async () => {
  const option = produce.querySelector("option[value=schema]");
  const subject = `${produce.dataset.topic}-value`;
  option.disabled = true;
  schema = null;
  try {
    const subjects = await ask("GET", `/subjects?subjectPrefix=${encodeURIComponent(subject)}`);
    if (!subjects.includes(subject)) return;
    schema = await ask("GET", `/subjects/${encodeURIComponent(subject)}/versions/latest`);
    option.textContent = `by ${subject}, version ${schema.version}`;
    option.disabled = false;
  } catch { /* then there is no registry to write by */ }
});

produce.addEventListener("submit", async (event) => {
  event.preventDefault();
  const problem = produce.querySelector(".problem");
  const well = produce.querySelector(".well");
  problem.textContent = well.textContent = "";
  try {
    const { encoding, tombstone } = produce.elements;
    const by = encoding.value === "schema" && !tombstone.checked ? bySchema : plainly;
    const { partition, offset } = await by(produce.elements);
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
