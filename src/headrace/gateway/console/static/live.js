// Refresh elements marked data-live, and tables when their address changes.
// All markup comes from the server.

import { at, debounced, localise } from "./dom.js";

const SWAP = { "X-Headrace-Swap": "1" };
const RETRY_S = 2;
const main = document.getElementById("main");
const seen = new Map();  // the last markup of each part
let timer = 0;
let asking = null;
let shown = location.search;  // the query of the page; a change of the fragment is not a new page

for (const part of document.querySelectorAll("[data-live]")) seen.set(part.id, part.innerHTML);
localise(document);

export function listen() {
  for (const form of document.querySelectorAll("form[data-filter]")) {
    const go = () => swap(filtered(form), false);
    form.addEventListener("input", debounced(120, go));
    form.addEventListener("submit", (event) => { event.preventDefault(); go(); });
  }
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-swap]");
    if (!link || event.metaKey || event.ctrlKey || event.shiftKey || event.button) return;
    event.preventDefault();
    swap(link.href, true);
  });
  addEventListener("popstate", () => { if (location.search !== shown) location.reload(); });
  document.addEventListener("visibilitychange", () => { if (!document.hidden) again(0); });
  if (main.hasAttribute("data-recover")) recover();
  else again(every());
}

// Refresh at once, because something has changed.
export const refresh = () => read(location.href, {});

const every = () => Number(main.dataset.every || 0);

function again(seconds) {
  clearTimeout(timer);
  if (every()) timer = setTimeout(beat, seconds * 1000);
}

async function beat() {
  const busy = document.hidden || document.querySelector("dialog[open]");
  const began = performance.now();
  const well = busy || await read(main.dataset.from ? at(main.dataset.from) : location.href, {});  // a search is not repeated
  const took = (performance.now() - began) / 1000;
  again(well ? Math.max(every(), took * 10) : RETRY_S);  // slow pages are refreshed less often
}

function filtered(form) {
  const address = new URL(location.href);
  const page = [...form.elements].find((each) => each.type === "search").name.replace(/q$/, "page");
  address.searchParams.delete(page);
  for (const field of form.elements) {
    if (!field.name || field.type === "hidden") continue;
    address.searchParams.delete(field.name);
    if (field.type === "checkbox" ? field.checked : field.value) address.searchParams.set(field.name, field.value);
  }
  return address.href;
}

export async function swap(url, kept) {
  if (kept) history.pushState(null, "", url);
  else history.replaceState(null, "", url);
  shown = location.search;
  await read(url, SWAP);
}

async function read(url, headers) {
  asking?.abort();
  const mine = asking = new AbortController();
  try {
    const response = await fetch(url, { headers, signal: mine.signal });
    if (response.status === 401) { location.reload(); return false; }  // the session has ended: the login page comes
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    if (!response.ok) {
      const said = page.querySelector(".empty p")?.textContent ?? `status ${response.status}`;
      away(response.status === 503 ? `The cluster does not answer, what is below may be old: ${said}` : `This is not there any more: ${said}`);
      return false;
    }
    adopt(page);
    away("");
    return true;
  } catch (error) {
    if (error.name !== "AbortError") away("The gateway does not answer. This page tries again by itself.");
    return error.name === "AbortError";
  }
}

function away(text) {
  const banner = document.getElementById("away");
  banner.hidden = !text;
  if (banner.textContent !== text) banner.textContent = text;
}

function adopt(page) {
  for (const part of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(part.id);
    if (!fresh || seen.get(part.id) === fresh.innerHTML || isMarked(part)) continue;
    seen.set(part.id, fresh.innerHTML);
    keepingPlace(part, () => part.replaceChildren(...fresh.childNodes));
    localise(part);
    part.dispatchEvent(new CustomEvent("renewed", { bubbles: true }));
  }
}

// Text is selected, perhaps to be copied: leave it until the next refresh.
function isMarked(part) {
  const marked = getSelection();
  return !marked.isCollapsed && part.contains(marked.anchorNode);
}

const reach = (part) => [...part.querySelectorAll(FOCUSABLE)];
const called = (each) => `${each.tagName} ${each.rel || each.getAttribute("aria-label") || each.textContent.trim() || each.name}`;

// Restore the focus to the element with the same name, or else at the same position: rows come and go.
function remembered(part) {
  const before = reach(part);
  const at = before.indexOf(document.activeElement);
  if (at < 0) return null;
  const name = called(before[at]);
  const turned = before[at].rel;  // the last page has no `next` link, but `prev`
  const nth = before.slice(0, at).filter((each) => called(each) === name).length;
  return () => {
    const now = reach(part);
    const same = now.filter((each) => called(each) === name);
    const near = turned ? now.find((each) => each.rel) : now[Math.min(at, now.length - 1)];
    (same[Math.min(nth, same.length - 1)] ?? near)?.focus({ preventScroll: true });
  };
}

const FOCUSABLE = "a[href], button, input, select, textarea, summary, [tabindex=\"0\"]";

// Keep the focus, the scroll position of wide tables, and closed details.
function keepingPlace(part, change) {
  const refocus = remembered(part);
  const scrolled = [...part.querySelectorAll(".scroll")].map((each) => each.scrollLeft);
  const opened = [...part.querySelectorAll("details")].map((each) => each.open);
  change();
  refocus?.();
  const details = part.querySelectorAll("details");
  if (details.length === opened.length) details.forEach((each, index) => { each.open = opened[index]; });
  part.querySelectorAll(".scroll").forEach((each, index) => { each.scrollLeft = scrolled[index] ?? 0; });
}

async function recover() {
  try {
    const response = await fetch(location.href);
    if (response.status !== 503) { location.reload(); return; }
  } catch { /* the gateway is away as well: try on */ }
  setTimeout(recover, RETRY_S * 1000);
}
