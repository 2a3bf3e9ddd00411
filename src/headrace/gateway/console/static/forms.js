// Dialogs, and forms that are requests to the API: data-send="DELETE /api/v1/topics/orders".

import { ask, at, toast, toastLater } from "./dom.js";
import { refresh } from "./live.js";

export function listen() {
  document.addEventListener("click", (event) => {
    for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
    const opener = event.target.closest("[data-open]");
    if (opener) open(opener);
    const closer = event.target.closest("[data-close]");
    if (closer) closer.closest("dialog").close();
    const copier = event.target.closest("[data-copy]");
    if (copier) copy(copier);
    if (event.target.matches("dialog")) event.target.close();  // its backdrop
  });
  document.addEventListener("input", (event) => {
    const same = event.target.form?.querySelector("[data-same]");
    if (same) same.setCustomValidity(same.value === event.target.form.elements[same.dataset.same].value ? "" : "the two are not the same");
    const must = event.target.dataset?.must;
    if (must !== undefined) event.target.form.querySelector("[type=submit]").disabled = event.target.value !== must;
  });
  document.addEventListener("close", (event) => {  // a password does not stay in a dialog
    for (const field of event.target.querySelectorAll?.("[type=password]") ?? []) field.value = "";
  }, true);
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.dataset.send && !form.dataset.setting) return;
    event.preventDefault();
    if (form.dataset.send) submit(form, form.dataset.send, form.dataset.body ? body(form) : undefined);
    else change(form, event.submitter);
  });
}

function open(opener) {
  const dialog = document.getElementById(opener.dataset.open);
  const form = dialog.querySelector("form");
  form?.reset();
  for (const said of dialog.querySelectorAll(".problem, .field-problem, .well")) said.textContent = "";
  for (const field of dialog.querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  for (const field of dialog.querySelectorAll("[data-must]")) field.form.querySelector("[type=submit]").disabled = true;
  if (opener.dataset.must) for (const field of dialog.querySelectorAll("[data-must]")) field.dataset.must = opener.dataset.must;
  for (const [key, value] of Object.entries(opener.dataset)) {
    if (!key.startsWith("fill")) continue;
    const name = key.slice(4).toLowerCase();
    if (form.elements[name]) form.elements[name].value = value;
    for (const shown of dialog.querySelectorAll(`[data-if-${name}]`)) shown.hidden = !value;
    for (const shown of dialog.querySelectorAll(`[data-show-${name}]`)) shown.textContent = value;
  }
  if (opener.dataset.send) form.dataset.send = opener.dataset.send;
  dialog.showModal();
  dialog.dispatchEvent(new CustomEvent("opened"));
}

// Return the fields of a form as JSON: `configs.retention.ms` is a setting in `configs`; empty fields are left out.
export function body(form) {
  const found = {};
  for (const field of form.elements) {
    if (!field.name || field.disabled || (field.type === "radio" && !field.checked)) continue;
    const value = field.type === "checkbox" ? field.checked : field.value;
    if (value === "" || (field.type === "checkbox" && !value)) continue;
    const [first, ...rest] = field.name.split(".");
    const typed = field.dataset.as === "number" ? Number(value) : field.dataset.as === "list" ? value.split(",") : field.dataset.as === "numbers" ? value.split(",").map(Number) : value;
    if (rest.length) (found[first] ??= {})[rest.join(".")] = typed;
    else found[first] = typed;
  }
  if (typeof found.configs === "string") found.configs = settings(found.configs);
  return found;
}

// Lines of name=value.
function settings(text) {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return Object.fromEntries(lines.map((line) => {
    const at = line.indexOf("=");
    if (at < 1) throw new Error(`${line} is no setting: write name=value`);
    return [line.slice(0, at).trim(), line.slice(at + 1).trim()];
  }));
}

export async function submit(form, send, given) {
  const [method, url] = send.split(/ (.*)/);
  const problem = form.querySelector(".problem");
  const buttons = form.querySelectorAll("button");
  problem.textContent = "";
  clear(form);
  for (const each of buttons) each.disabled = true;
  try {
    const answer = await ask(method, url, given);
    done(form, answer);
  } catch (error) {
    if (!tell(form, error.message)) problem.textContent = error.message;
  } finally {
    for (const each of buttons) each.disabled = false;
  }
}

function clear(form) {
  for (const each of form.querySelectorAll(".field-problem")) each.textContent = "";
  for (const each of form.querySelectorAll("[aria-invalid]")) each.removeAttribute("aria-invalid");
}

// Show a refusal at the field that it is about: the one with the longest word of `data-about` in the message.
function tell(form, message) {
  let best = null;
  let longest = 0;
  for (const field of form.querySelectorAll("[data-about], [aria-describedby='setting-problem']")) {
    const words = field.dataset.about?.split(",") ?? [form.elements.name.value];
    for (const word of words) {
      if (word.length > longest && message.includes(word)) [best, longest] = [field, word.length];
    }
  }
  const place = best && document.getElementById(best.getAttribute("aria-describedby").split(" ").at(-1));
  if (!place) return false;
  best.setAttribute("aria-invalid", "true");
  best.closest("details:not([open])")?.setAttribute("open", "");
  place.textContent = message;
  best.focus();
  return true;
}

function done(form, answer) {
  const then = form.dataset.then || "refresh";
  const name = form.elements.name?.value ?? answer?.name ?? "";
  const said = form.dataset.said;
  if (then === "refresh") {
    form.closest("dialog")?.close();
    if (said) toast(said);
    refresh();
  } else {
    toastLater(said);
    location.assign(then === "reload" ? location.href : at(then.replace("{name}", encodeURIComponent(name))));
  }
}

function change(form, submitter) {
  const { name, value } = form.elements;
  const unset = submitter?.name === "unset";
  form.dataset.said = unset ? `${name.value} is given back` : `${name.value} is ${value.value}`;
  submit(form, `PATCH ${form.dataset.setting}`, unset ? { unset: [name.value] } : { set: { [name.value]: value.value } });
}

async function copy(button) {
  const text = button.closest("[data-copied]").querySelector("pre, code").textContent;
  try {
    await navigator.clipboard.writeText(text);
    toast("copied");
  } catch {
    toast("this browser does not let pages of plain HTTP copy: select the text instead");
  }
}
