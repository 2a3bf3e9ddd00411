// Producing to a topic, and emptying it.

import { ask, toastLater } from "./dom.js";
import { refresh } from "./live.js";

const produce = document.querySelector("form[data-produce]");
const purge = document.querySelector("form[data-purge]");

function message(form) {
  const { key, partition, value, encoding, tombstone, headers } = form.elements;
  if (encoding.value === "json" && !tombstone.checked) {
    try {
      JSON.parse(value.value);
    } catch (error) {
      throw new Error(`the value is no JSON: ${error.message}`);
    }
  }
  return {
    key: key.value === "" ? null : key.value,
    key_encoding: "text",
    value: tombstone.checked ? null : value.value,
    encoding: encoding.value === "json" ? "text" : encoding.value,  // as it was typed, to the last digit
    headers: headers.value.split("\n").filter((line) => line.trim()).map((line) => {
      const at = line.indexOf(":");
      if (at < 1) throw new Error(`${line} is no header: write name: value`);
      return { name: line.slice(0, at).trim(), value: line.slice(at + 1).trim() };
    }),
    ...(partition.value !== "" && { partition: Number(partition.value) }),
  };
}

produce.addEventListener("submit", async (event) => {
  event.preventDefault();
  const problem = produce.querySelector(".problem");
  const well = produce.querySelector(".well");
  problem.textContent = well.textContent = "";
  try {
    const answer = await ask("POST", produce.dataset.produce, message(produce));
    const [{ partition, offset }] = answer.messages;
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
