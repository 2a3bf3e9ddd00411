// Charts that poll an address of the API; several may show parts of the same response.

import { at } from "./dom.js";
import { Plot } from "./plot.js";

const EVERY_MS = 2000;
const FIGURES = { bytes: [["in", "bytes_in"], ["out", "bytes_out"]] };
const NOTHING = { times: [], series: [] };
const KEPT = 300;  // samples of a group's lag: ten minutes
const TOPICS = 6;  // those with the most lag have a line of their own
const lags = [];  // since the page was opened
const sources = new Map();

for (const figure of document.querySelectorAll("[data-chart][data-source]")) {
  const plots = sources.get(figure.dataset.source) ?? [];
  plots.push({ plot: new Plot(figure), pick: figure.dataset.pick ?? "" });
  sources.set(figure.dataset.source, plots);
}

// Rates as series: of all brokers together, of each broker, or of one topic, with gaps where nothing was sampled.
function rates({ interval_s: interval, points }, pick) {
  const whole = [];
  for (const point of points) {
    const before = whole.at(-1);
    if (before && point.at_ms - before.at_ms > interval * 2500) whole.push({ at_ms: before.at_ms + interval * 1000, brokers: {}, complete: false });
    whole.push(point);
  }
  const [what, of] = pick.split(" ");
  const times = whole.map((each) => each.at_ms);
  const all = (point, figure) => {
    if (!point.complete) return null;  // a broker did not answer: the sum is not known
    const known = of === "topic" ? [point.topic] : Object.values(point.brokers);
    return known.reduce((sum, each) => sum + each[figure], 0);
  };
  if (of !== "brokers") {
    const figures = FIGURES[what] ?? [["in", "messages_in"]];
    return { times, series: figures.map(([name, figure]) => ({ name, values: whole.map((each) => all(each, figure)) })) };
  }
  const brokers = [...new Set(points.flatMap((each) => Object.keys(each.brokers)))].sort((one, other) => one - other);
  return { times, series: brokers.map((id) => ({ name: `broker ${id}`, values: whole.map((each) => each.brokers[id]?.messages_in ?? null) })) };
}

// The lag of a group by topic, as this page has seen it: a gap where the cluster, or the leader of a partition, did not answer.
function behind(group, now) {
  const found = new Map();
  for (const { topic, committed, lag } of group?.partitions ?? []) {
    if (committed === null) continue;
    const before = found.has(topic) ? found.get(topic) : 0;
    found.set(topic, before === null || lag === null ? null : before + lag);
  }
  lags.push({ at: now, topics: found });
  if (lags.length > KEPT) lags.shift();
  const newest = lags.findLast((each) => each.topics.size)?.topics ?? new Map();
  const ranked = [...newest.keys()].sort((one, other) => newest.get(other) - newest.get(one) || (one < other ? -1 : 1));
  const series = ranked.slice(0, TOPICS).map((name) => ({ name, values: lags.map((each) => each.topics.get(name) ?? null) }));
  const rest = ranked.slice(TOPICS);
  const sum = ({ topics }) => rest.reduce((total, name) => (total === null || topics.get(name) == null ? null : total + topics.get(name)), 0);
  if (rest.length) series.push({ name: "others", values: lags.map(sum) });
  return { times: lags.map((each) => each.at), series };
}

async function follow(source, plots) {
  if (!document.hidden) {
    try {
      const response = await fetch(at(source), { headers: { Accept: "application/json" } });
      const now = Date.parse(response.headers.get("Date")) || Date.now();  // the browser's clock may be wrong
      const answer = response.ok ? await response.json() : null;
      for (const { plot, pick } of plots) {
        if (!pick) plot.show(behind(answer, now), now);
        else if (answer) plot.show(answer.points ? rates(answer, pick) : answer.charts[pick] ?? NOTHING, now);
      }
    } catch { /* the page says that the gateway is away; the chart stays as it is */ }
  }
  setTimeout(() => follow(source, plots), EVERY_MS);
}

for (const [source, plots] of sources) follow(source, plots);
