// Helpers of all scripts. Text from the cluster only becomes text nodes, never markup.

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === false || value == null) continue;
    if (key === "text") made.textContent = value;
    else if (value === true) made.setAttribute(key, "");
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export const debounced = (wait, act) => {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), wait);
  };
};

export const number = new Intl.NumberFormat("en");

export function toast(text) {
  const place = document.getElementById("toast");
  place.textContent = text;
  clearTimeout(place.timer);
  place.timer = setTimeout(() => { place.textContent = ""; }, 5000);
}

// Show a message on the next page.
export function toastLater(text) {
  if (text) sessionStorage.setItem("toast", text);
}

// The address of a path: the gateway may serve several clusters, each under a prefix of its own.
export const at = (path) => `${document.documentElement.dataset.root ?? ""}${path}`;

// Send a request to the API: return its response, or throw an Error with the message of its refusal.
export async function ask(method, url, body) {
  const options = { method, headers: { Accept: "application/json" } };
  const token = document.querySelector("meta[name=csrf-token]")?.content;
  if (token) options.headers["X-CSRF-Token"] = token;
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(at(url), options);
  } catch {
    throw new Error("the gateway does not answer: is it still running?");
  }
  const text = await response.text();
  let answer = null;
  try {
    answer = text ? JSON.parse(text) : null;
  } catch {
    throw new Error(`the gateway's answer cannot be read (status ${response.status})`);
  }
  if (!response.ok) throw Object.assign(new Error(answer?.message ?? `refused with status ${response.status}`), { status: response.status });
  return answer;
}

const two = (value) => String(value).padStart(2, "0");

// Format times as the server does, in the browser's time zone, so that the width does not change.
export function stamp(ms) {
  const at = new Date(ms);
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

export function localise(root) {
  for (const each of root.querySelectorAll("time[datetime]")) {
    const ms = Date.parse(each.dateTime);
    if (Number.isNaN(ms)) continue;
    each.textContent = each.hasAttribute("data-clock") ? stamp(ms).slice(11, 19) : stamp(ms);
    each.title = `${each.dateTime.replace("T", " ").replace("Z", "")} UTC`;
  }
}
