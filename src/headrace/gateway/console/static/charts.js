// Charts that poll an address of the API; several may show parts of the same response.

import { at } from "./dom.js";
import { Plot } from "./plot.js";

const EVERY_MS = 2000;
const GAP_MS = 10000;  // between two samples, beyond which nothing is drawn between them
const KEPT = 300;  // samples: ten minutes, if the page is open
const TOPICS = 6;  // those with the most lag have a line of their own
const COUNTERS = ["messages_in", "bytes_in", "bytes_out"];
const FIGURES = { bytes: [["in", "bytes_in"], ["out", "bytes_out"]] };
const NOTHING = { times: [], series: [] };
const sources = new Map();

for (const figure of document.querySelectorAll("[data-chart][data-source]")) {
  const plots = sources.get(figure.dataset.source) ?? [];
  plots.push({ plot: new Plot(figure), pick: figure.dataset.pick ?? "" });
  sources.set(figure.dataset.source, plots);
}

// The samples of a source that this tab has seen, also on earlier pages; with a new one, if there is one.
function samples(source, sample) {
  const key = `samples ${at(source)}`;
  const known = JSON.parse(sessionStorage.getItem(key) ?? "[]");
  if (sample) known.push(sample);
  try {
    sessionStorage.setItem(key, JSON.stringify(known.slice(-KEPT)));
  } catch {
    sessionStorage.clear();  // the samples of many topics and groups: begin again
  }
  return known;
}

// The rates between two samples of the brokers' counters, which begin at 0 again if a broker restarts.
function grown(before, after) {
  const brokers = {};
  const seconds = (after.at_ms - before.at_ms) / 1000;
  for (const [id, now] of Object.entries(after.brokers)) {
    const then = before.brokers[id];
    if (!then || after.at_ms - before.at_ms > GAP_MS || COUNTERS.some((each) => now[each] < then[each])) continue;
    brokers[id] = Object.fromEntries(COUNTERS.map((each) => [each, (now[each] - then[each]) / seconds]));
  }
  return { at: after.at_ms, brokers, complete: after.registered.every((id) => id in brokers) };
}

// Rates as series: of all brokers together, or of each broker, with gaps where nothing was sampled.
function rates(known, pick) {
  const [what, of] = pick.split(" ");
  const points = known.slice(1).map((after, index) => grown(known[index], after));
  const times = points.map((each) => each.at);
  if (of === "brokers") {
    const brokers = [...new Set(points.flatMap((each) => Object.keys(each.brokers)))].sort((one, other) => one - other);
    return { times, series: brokers.map((id) => ({ name: `broker ${id}`, values: points.map((each) => each.brokers[id]?.messages_in ?? null) })) };
  }
  // A broker that did not answer: the sum is not known.
  const sum = (point, figure) => (point.complete ? Object.values(point.brokers).reduce((total, each) => total + each[figure], 0) : null);
  const figures = FIGURES[what] ?? [["in", "messages_in"]];
  return { times, series: figures.map(([name, figure]) => ({ name, values: points.map((each) => sum(each, figure)) })) };
}

// The lag of a group by topic; null where the leader of a partition does not answer.
function lagging({ partitions }) {
  const found = {};
  for (const { topic, committed, lag } of partitions) {
    if (committed === null) continue;
    const before = topic in found ? found[topic] : 0;
    found[topic] = before === null || lag === null ? null : before + lag;
  }
  return found;
}

// Lags as series, with gaps where the cluster did not answer.
function lags(known) {
  const newest = known.findLast((each) => Object.keys(each.topics).length)?.topics ?? {};
  const ranked = Object.keys(newest).sort((one, other) => newest[other] - newest[one] || (one < other ? -1 : 1));
  const series = ranked.slice(0, TOPICS).map((name) => ({ name, values: known.map((each) => each.topics[name] ?? null) }));
  const rest = ranked.slice(TOPICS);
  const sum = ({ topics }) => rest.reduce((total, name) => (total === null || topics[name] == null ? null : total + topics[name]), 0);
  if (rest.length) series.push({ name: "others", values: known.map(sum) });
  return { times: known.map((each) => each.at_ms), series };
}

async function follow(source, plots) {
  if (!document.hidden) {
    try {
      const response = await fetch(at(source), { headers: { Accept: "application/json" } });
      const now = Date.parse(response.headers.get("Date")) || Date.now();  // the browser's clock may be wrong
      const answer = response.ok ? await response.json() : null;
      const ofGroup = !plots[0].pick;
      const known = ofGroup ? samples(source, { at_ms: now, topics: answer ? lagging(answer) : {} }) : answer?.charts ? [] : samples(source, answer);
      for (const { plot, pick } of plots) plot.show(ofGroup ? lags(known) : answer?.charts ? answer.charts[pick] ?? NOTHING : rates(known, pick), now);
    } catch { /* the page says that the gateway is away; the chart stays as it is */ }
  }
  setTimeout(() => follow(source, plots), EVERY_MS);
}

for (const [source, plots] of sources) follow(source, plots);
