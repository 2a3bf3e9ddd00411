// Charts that poll an address of the API; several may show parts of the same response.

import { at } from "./dom.js";
import { Plot } from "./plot.js";

const EVERY_MS = 2000;
const FIGURES = { bytes: [["in", "bytes_in"], ["out", "bytes_out"]] };
const NOTHING = { times: [], series: [] };
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
    if (known.some((each) => each[figure] === null)) return null;  // the bytes of Apache Kafka
    return known.reduce((sum, each) => sum + each[figure], 0);
  };
  if (of !== "brokers") {
    const figures = FIGURES[what] ?? [["in", "messages_in"]];
    return { times, series: figures.map(([name, figure]) => ({ name, values: whole.map((each) => all(each, figure)) })) };
  }
  const brokers = [...new Set(points.flatMap((each) => Object.keys(each.brokers)))].sort((one, other) => one - other);
  return { times, series: brokers.map((id) => ({ name: `broker ${id}`, values: whole.map((each) => each.brokers[id]?.messages_in ?? null) })) };
}

async function follow(source, plots) {
  if (!document.hidden) {
    try {
      const response = await fetch(at(source), { headers: { Accept: "application/json" } });
      if (response.ok) {
        const answer = await response.json();
        const now = Date.parse(response.headers.get("Date")) || Date.now();  // the browser's clock may be wrong
        for (const { plot, pick } of plots) plot.show(answer.points ? rates(answer, pick) : pick ? answer.charts[pick] ?? NOTHING : answer, now);
      }
    } catch { /* the page says that the gateway is away; the chart stays as it is */ }
  }
  setTimeout(() => follow(source, plots), EVERY_MS);
}

for (const [source, plots] of sources) follow(source, plots);
