// The result of a compatibility check: readable messages, and the raw ones folded away.

import { ask, element } from "./dom.js";

const REASON = /^\{errorType:'\w+', description:'(.*?)'(?:, additionalInfo:'(.*)')?\}$/s;
const VERSION = /^\{oldSchemaVersion: (\d+)\}$/;
const LEVEL = /^\{compatibility: '(\w+)'\}$/;
const FOLDED = /^\{oldSchema: /;

// {fits, why: "It is not …", reasons: [[sentence, detail]], raw: [line]}
export function verdict({ is_compatible: fits, messages }) {
  const raw = messages ?? [];
  const one = (pattern) => raw.map((each) => pattern.exec(each)?.[1]).find(Boolean);
  const [version, level] = [one(VERSION), one(LEVEL)];
  const told = raw.filter((each) => ![VERSION, LEVEL, FOLDED].some((pattern) => pattern.test(each)));
  return {
    fits,
    why: level ? `It is not ${level} compatible with ${version ? `version ${version}` : "the versions before"}.` : "",
    reasons: told.map((each) => REASON.exec(each)?.slice(1) ?? [each]),
    raw,
  };
}

export async function check(subject, schema) {
  return verdict(await ask("POST", `/compatibility/subjects/${encodeURIComponent(subject)}/versions?verbose=true`, schema));
}

export function show(form, { why, reasons, raw }) {
  const lines = reasons.map(([sentence, detail]) => element("li", {}, sentence, ...(detail && !sentence.includes(detail) ? [" ", element("small", { text: detail })] : [])));
  form.querySelector(".problem").replaceChildren(`It may not be the next version. ${why}`, element("ul", {}, ...lines));
  const folded = form.querySelector(".raw");
  folded.hidden = !raw.length;
  folded.open = false;
  folded.querySelector("pre").textContent = raw.join("\n");
}

export function forget(form) {
  for (const said of form.querySelectorAll(".well, .problem")) said.textContent = "";
  form.querySelector(".raw").hidden = true;
}
