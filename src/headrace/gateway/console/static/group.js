// Reset a group's offsets: a dry run is shown first, and exactly that is executed.

import { ask, element, number, toastLater } from "./dom.js";

const form = document.querySelector("form[data-reset]");
const execute = form.querySelector("[value=execute]");
const preview = form.querySelector("[data-preview]");
const sum = form.querySelector("[data-sum]");
const said = form.querySelector("[data-said]");

function show() {
  for (const field of form.querySelectorAll("[data-goes-with]")) field.hidden = form.elements.to.value !== field.dataset.goesWith;
}

// The dry run that is shown does not belong to the changed fields.
function forget() {
  execute.disabled = true;
  preview.hidden = true;
  sum.textContent = "Nothing changes until you have seen what would.";
  said.textContent = "";
}

function wanted(dry) {
  const { topic, partition, to, time, offset, shift } = form.elements;
  const found = { to: to.value, dry_run: dry };
  if (topic.value) found.topics = { [topic.value]: partition.value === "" ? [] : [Number(partition.value)] };
  else if (partition.value !== "") throw new Error("a partition is of a topic: say which");
  if (to.value === "time") {
    found.time_ms = new Date(time.value).getTime();
    if (Number.isNaN(found.time_ms)) throw new Error("say which time");
  }
  for (const [name, field] of [["offset", offset], ["shift", shift]]) {
    if (to.value !== name) continue;
    if (field.value === "") throw new Error(name === "offset" ? "say which offset" : "say how many records");
    found[name] = Number(field.value);
  }
  return found;
}

const cell = (text, kind = "num") => element("td", { class: kind, text });
const shown = (value) => (value === null ? "–" : number.format(value));

function row({ topic, partition, old, new: next, note }) {
  const difference = old === null ? "–" : `${next > old ? "+" : ""}${number.format(next - old)}`;
  return element("tr", {}, element("th", { scope: "row", text: `${topic} ${partition}` }), cell(shown(old)), cell(shown(next)), cell(difference, "num extra"), cell(note ?? "", ""));
}

form.addEventListener("change", () => { show(); forget(); });
form.addEventListener("input", forget);
form.closest("dialog").addEventListener("opened", () => { show(); forget(); });
form.addEventListener("submit", async (event) => {
  event.preventDefault();
  said.textContent = "";
  const dry = event.submitter?.value !== "execute";
  try {
    const { partitions } = await ask("POST", form.dataset.reset, wanted(dry));
    const moved = partitions.filter((each) => each.old !== each.new).length;
    if (!dry) {
      toastLater(`The offsets of ${moved} ${moved === 1 ? "partition" : "partitions"} were moved`);
      location.reload();
      return;
    }
    preview.querySelector("tbody").replaceChildren(...partitions.map(row));
    preview.hidden = false;
    sum.textContent = `${moved} of ${partitions.length} ${partitions.length === 1 ? "partition" : "partitions"} would move.`;
    execute.disabled = moved === 0;
  } catch (error) {
    said.textContent = error.message;
  }
});
show();
