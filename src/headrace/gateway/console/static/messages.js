// The form that searches, and the live tail: new messages come in at the top, the oldest leave at the bottom.

import { at, localise, number, stamp } from "./dom.js";

const YEAR_10000 = 253402300800000;  // milliseconds; later times cannot be formatted
const SHOWN = 500;  // most messages on the page
const form = document.getElementById("search");
const list = document.getElementById("messages");
const nothing = document.getElementById("nothing");
const told = document.getElementById("told");
const button = document.getElementById("tail");
const pattern = document.getElementById("message");
let source = null;
let counts = { shown: 0, skipped: 0 };
let saying = 0;

// -- searching -----------------------------------------------------------------------------------

form.elements.zone.value = -new Date().getTimezoneOffset();
for (const field of form.querySelectorAll("[data-goes-with]")) {
  const show = () => field.toggleAttribute("data-away", form.elements.where.value !== field.dataset.goesWith);
  form.elements.where.addEventListener("change", show);
  show();
}
form.addEventListener("submit", () => {
  for (const field of form.querySelectorAll("[data-away] input")) field.disabled = true;
});
addEventListener("pageshow", () => { for (const field of form.elements) field.disabled = false; });

// A search with a filter may take seconds: what it finds is shown at once, and how far it is.
if (list.dataset.stream) search(new EventSource(at(list.dataset.stream)));

function search(running) {
  const progress = document.getElementById("progress");
  const cancel = document.getElementById("stop");
  const more = document.querySelector(".told a[rel=next]");
  let found = 0;
  const end = (text) => {
    running.close();
    progress.hidden = cancel.hidden = true;
    told.textContent = text;
  };
  progress.hidden = cancel.hidden = false;
  told.textContent = "Searching";
  cancel.addEventListener("click", () => end(`Stopped after ${messages(found)}`));
  button.addEventListener("click", () => end(""), { once: true });
  running.addEventListener("message", (event) => {
    found += 1;
    list.hidden = false;
    list.append(row(JSON.parse(event.data, exact)));
  });
  running.addEventListener("progress", (event) => {
    const scanned = JSON.parse(event.data);
    progress.value = scanned.messages;
    told.textContent = `Searching: ${messages(found)} of ${number.format(scanned.messages)} looked at (${size(scanned.size_bytes)})`;
  });
  running.addEventListener("done", (event) => {
    const { scanned, stopped_by: bound, next, offline, filter_error: error } = JSON.parse(event.data);
    const what = found ? messages(found) : "No message";
    const stopped = { records: "messages", bytes: "bytes", time: "time" }[bound];
    end([
      scanned.messages ? `${what} of ${number.format(scanned.messages)} looked at (${size(scanned.size_bytes)}, ${(scanned.took_ms / 1000).toFixed(1)} s)` : offline.length ? "Not searched" : "Nothing to look at",
      stopped ? `stopped by the bound of ${stopped}` : "",
      offline.length ? `without a leader, and not searched: partition ${offline.join(", ")}` : "",
      error ? `the filter could not be evaluated for some messages, for example: ${error}` : "",
    ].filter(Boolean).join("; "));
    nothing.hidden = found > 0;
    if (bound === "end") return;
    const onwards = new URL(location.href);
    onwards.searchParams.set("after", next);
    more.href = onwards.href;
    more.hidden = false;
  });
  running.addEventListener("error", (event) => {
    if (!event.data && running.readyState !== EventSource.CLOSED) return end("The search was cut off");
    end("");
    document.querySelector(".problem").textContent = event.data ? JSON.parse(event.data).message : "the search was refused";
  });
}

function messages(count) {
  return `${number.format(count)} ${count === 1 ? "message" : "messages"}`;
}

// -- following -----------------------------------------------------------------------------------

button.addEventListener("click", () => (source ? stop("") : start()));

function start() {
  const wanted = new URLSearchParams();
  for (const name of ["partition", "key", "text", "filter"]) {
    if (form.elements[name].value) wanted.set(name, form.elements[name].value);
  }
  counts = { shown: 0, skipped: 0 };
  for (const each of list.querySelectorAll("details")) each.remove();
  list.hidden = nothing.hidden = true;
  source = new EventSource(at(`${button.dataset.tail}?${wanted}`));
  source.addEventListener("open", () => { glow(true); tell("waiting for messages"); });
  source.addEventListener("message", (event) => take(JSON.parse(event.data, exact)));
  source.addEventListener("skipped", (event) => { counts.skipped += JSON.parse(event.data).skipped; tell(); });
  source.addEventListener("status", (event) => {
    const { reachable, message } = JSON.parse(event.data);
    glow(reachable);
    tell(reachable ? "the cluster is back; waiting for messages" : `The cluster does not answer, so nothing comes: ${message}`);
  });
  source.addEventListener("error", (event) => {
    if (event.data) stop(JSON.parse(event.data).message);
    else if (source.readyState === EventSource.CLOSED) stop("the tail was refused: too many may be open, or the topic is gone");
    else { glow(false); tell("the tail was cut off, and comes back by itself"); }
  });
  press(true);
}

function stop(why) {
  source.close();
  source = null;
  press(false);
  tell(why ? `The tail ended: ${why}` : `The tail is stopped after ${number.format(counts.shown)}`);
}

function press(on) {
  button.setAttribute("aria-pressed", on);
  glow(on);
}

// The dot is on while the tail is connected.
function glow(on) {
  button.querySelector(".live-dot").classList.toggle("on", on);
}

// Update at most twice a second. Screen readers announce the tail's state and its first message, not every count.
function tell(text) {
  told.ariaLive = text || counts.shown <= 1 ? "polite" : "off";
  if (text) { told.textContent = text; return; }
  saying ||= setTimeout(() => {
    saying = 0;
    if (!source) return;
    const skipped = counts.skipped ? `, ${number.format(counts.skipped)} skipped because they came too fast` : "";
    told.textContent = `Live: ${number.format(counts.shown)} ${counts.shown === 1 ? "message" : "messages"}${skipped}`;
  }, 500);
}

function take(message) {
  counts.shown += 1;
  list.hidden = false;
  list.querySelector(".columns").after(row(message));
  const all = list.querySelectorAll("details");
  if (all.length > SHOWN) all[all.length - 1].remove();
  tell();
}

// Integers beyond the precision of JavaScript stay as they were written.
function exact(_, value, context) {
  const lossy = typeof value === "number" && !Number.isSafeInteger(value) && /^-?\d+$/.test(context?.source ?? "");
  return lossy && JSON.rawJSON ? JSON.rawJSON(context.source) : value;
}

// -- one message ---------------------------------------------------------------------------------

const size = (bytes) => (bytes < 1024 ? `${bytes} B` : bytes < 1048576 ? `${(bytes / 1024).toFixed(1)} KiB` : `${(bytes / 1048576).toFixed(1)} MiB`);
const full = (value) => (value === null ? "" : typeof value === "string" ? value : JSON.stringify(value, null, 2));
const line = (value) => (typeof value === "string" ? value : JSON.stringify(value)).slice(0, 960).replace(/\s+/g, " ").slice(0, 240);
const about = (encoding, bytes, cut) => [encoding, size(bytes), cut ? "cut" : ""].filter(Boolean).join(", ");

function row(message) {
  const made = pattern.content.firstElementChild.cloneNode(true);
  const put = (selector, text) => { made.querySelector(selector).textContent = text; };
  made.querySelector(".partition").append(message.partition);
  made.querySelector(".offset").append(message.offset);
  const time = made.querySelector("time");
  const known = message.timestamp_ms !== null && message.timestamp_ms >= 0 && message.timestamp_ms < YEAR_10000;
  if (known) time.dateTime = new Date(message.timestamp_ms).toISOString();
  time.textContent = known ? stamp(message.timestamp_ms) : "–";
  for (const part of ["key", "value"]) {
    put(`.${part}-line`, message[part] === null ? `no ${part}` : line(message[part]));
    made.querySelector(`.${part}-line`).classList.toggle("null", message[part] === null);
    made.querySelector(`.${part}-mark`).hidden = message[`${part}_encoding`] !== "base64";
    put(`.${part}-full`, full(message[part]));
    put(`.${part}-about`, about(message[`${part}_encoding`], message[`${part}_size`], part === "value" && message.truncated));
  }
  for (const link of made.querySelectorAll("a.open")) link.href = link.getAttribute("href").replace("partition=&offset=", `partition=${message.partition}&offset=${message.offset}`);
  for (const part of ["key", "value"]) {
    const id = message[`${part}_schema_id`];
    if (id !== null) made.querySelector(`.${part}-schema`).append(schema(id, part));
  }
  const { length } = message.headers;
  made.querySelector(".headers-part").hidden = made.querySelector(".headers-mark").hidden = !length;
  put(".headers-mark", `${length} ${length === 1 ? "header" : "headers"}`);
  made.querySelector(".headers").append(...message.headers.map(header));
  made.classList.add("fresh");
  localise(made);
  return made;
}

// From a message to the schema by which it was encoded.
function schema(id, part) {
  const link = document.createElement("a");
  link.className = "small";
  link.href = at(`/ui/schema-ids/${id}?subject=${encodeURIComponent(`${list.dataset.topic}-${part}`)}`);
  link.textContent = `schema ${id}`;
  return link;
}

function header({ name, value }) {
  const made = document.createElement("tr");
  const key = made.appendChild(document.createElement("th"));
  key.scope = "row";
  key.className = "mono";
  key.textContent = name;
  const cell = made.appendChild(document.createElement("td"));
  cell.className = "mono break";
  cell.textContent = full(value);
  return made;
}
