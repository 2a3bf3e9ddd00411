// A line chart: time from left to right, several series, gaps where values are missing.
// It can be read with the pointer and with the arrow keys.

const SVG = "http://www.w3.org/2000/svg";
const LEFT = 64, RIGHT = 8, TOP = 8, BOTTOM = 22;
const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const round = (value) => (value >= 100 || Number.isInteger(value) ? whole.format(value) : value >= 1 ? value.toFixed(1) : value.toPrecision(2));

export function written(value, unit) {
  if (value == null) return "–";
  if (unit !== "bytes") return value >= 1e6 ? `${round(value / 1e6)} M` : value >= 1e4 ? `${round(value / 1e3)} k` : round(value);
  let step = 0;
  while (value >= 1024 && step < UNITS.length - 1) { value /= 1024; step += 1; }
  return `${round(value)} ${UNITS[step]}`;
}

// A round number that is not below `most`, in the unit's own way of being round.
export function ceiling(most, unit) {
  if (!(most > 0)) return unit === "bytes" ? 1024 : 4;
  const base = unit === "bytes" ? 1024 ** Math.floor(Math.log2(most) / 10) : 1;
  const scaled = most / base;
  const ten = 10 ** Math.floor(Math.log10(scaled));
  const step = [1, 2, 4, 6, 8, 10].find((each) => each * ten >= scaled) * ten;
  return Math.max(step * base, unit === "count" ? 4 : 0);
}

function draw(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

const STALE_MS = 60000;  // after which the last values count as old
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

// With its day if that is not the day of `now`.
function clock(ms, seconds, now) {
  const at = new Date(ms);
  const time = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", ...(seconds && { second: "2-digit" }) });
  return at.toDateString() === new Date(now).toDateString() ? time : `${at.getDate()} ${MONTHS[at.getMonth()]} ${time}`;
}

export class Plot {
  constructor(figure) {
    this.figure = figure;
    this.svg = figure.querySelector("svg");
    this.caption = figure.querySelector("figcaption");
    this.said = figure.querySelector("[aria-live]");
    this.title = figure.dataset.title;
    this.unit = figure.dataset.unit;
    this.data = { times: [], series: [] };
    this.at = null;  // the point under the pointer, or the newest
    this.now = Date.now();
    new ResizeObserver(() => this.draw()).observe(this.svg);
    this.svg.addEventListener("pointermove", (event) => this.read(this.nearest(event.offsetX)));
    this.svg.addEventListener("pointerleave", () => this.read(null));
    this.svg.addEventListener("blur", () => this.read(null));
    this.svg.addEventListener("keydown", (event) => this.key(event));
  }

  // {times: [ms], series: [{name, values: [number or null]}]}; `now` by the clock that the times are of
  show(data, now = Date.now()) {
    this.now = now;
    const held = this.at === null ? null : this.data.times[this.at];
    this.data = data;
    const at = held === null ? -1 : data.times.indexOf(held);
    this.at = at < 0 ? null : at;
    this.draw();
  }

  key(event) {
    const last = this.data.times.length - 1;
    const from = this.at ?? last;
    const to = { ArrowLeft: from - 1, ArrowRight: from + 1, Home: 0, End: last }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.read(Math.min(last, Math.max(0, to)));
    const values = this.data.series.map((each) => `${each.name} ${written(each.values[this.at], this.unit)}`);
    this.said.textContent = `${this.time(this.at)}: ${values.join(", ")}`;
  }

  nearest(x) {
    const { times } = this.data;
    if (!times.length) return null;
    return times.reduce((best, _, index) => (Math.abs(this.x(times[index]) - x) < Math.abs(this.x(times[best]) - x) ? index : best), 0);
  }

  read(at) {
    if (at === this.at) return;
    this.at = at;
    this.draw();
  }

  draw() {
    const { width, height } = this.svg.getBoundingClientRect();
    const { times, series } = this.data;
    if (!width) return;
    const known = series.flatMap((each) => each.values.filter((value) => value != null));
    this.top = ceiling(Math.max(0, ...known), this.unit);
    const [from, to] = times.length > 1 ? [Math.min(times[0], times.at(-1) - 60000), times.at(-1)] : [(times[0] ?? this.now) - 60000, times[0] ?? this.now];
    this.x = (ms) => LEFT + ((ms - from) / (to - from)) * (width - LEFT - RIGHT);
    this.y = (value) => TOP + (1 - value / this.top) * (height - TOP - BOTTOM);
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const parts = [...this.grid(width, height, from, to)];
    series.forEach((each, index) => parts.push(...this.line(each, index)));
    if (!known.length) parts.push(draw("text", { class: "none", x: (LEFT + width) / 2, y: height / 2 }, "waiting for the first figures"));
    if (this.at !== null && times[this.at] !== undefined) parts.push(...this.cursor(height));
    this.svg.replaceChildren(...parts);
    this.legend();
  }

  * grid(width, height, from, to) {
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      const y = this.y(this.top * part);
      yield draw("line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y, y2: y });
      if (part % 0.5 === 0) yield draw("text", { class: "axis", x: LEFT - 8, y: y + 4, "text-anchor": "end" }, written(this.top * part, this.unit));
    }
    const marks = Math.max(2, Math.min(6, Math.floor((width - LEFT) / 90)));
    const seconds = to - from < marks * 60000;
    for (let mark = 0; mark < marks; mark += 1) {
      const ms = from + ((to - from) * mark) / (marks - 1);
      const anchor = mark === 0 ? "start" : mark === marks - 1 ? "end" : "middle";
      yield draw("text", { class: "axis", x: this.x(ms), y: height - 4, "text-anchor": anchor }, clock(ms, seconds, this.now));
    }
  }

  // One path for each stretch without a gap; a lone point is a dot.
  * line({ values }, index) {
    const paint = `paint-${(index % 6) + 1}`;
    const stretches = [[]];
    values.forEach((value, at) => (value == null ? stretches.push([]) : stretches.at(-1).push([this.x(this.data.times[at]), this.y(value)])));
    for (const points of stretches.filter((each) => each.length)) {
      const path = points.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join("L");
      const base = this.y(0).toFixed(1);
      if (points.length === 1) yield draw("circle", { class: `spot ${paint}`, cx: points[0][0], cy: points[0][1], r: 3 });
      else {
        if (this.data.series.length === 1) yield draw("path", { class: `area ${paint}`, d: `M${path}L${points.at(-1)[0].toFixed(1)} ${base}L${points[0][0].toFixed(1)} ${base}Z` });
        yield draw("path", { class: `line ${paint}`, d: `M${path}` });
      }
    }
  }

  * cursor(height) {
    const x = this.x(this.data.times[this.at]);
    yield draw("line", { class: "cursor", x1: x, x2: x, y1: TOP, y2: height - BOTTOM });
    for (const [index, each] of this.data.series.entries()) {
      const value = each.values[this.at];
      if (value != null) yield draw("circle", { class: `spot paint-${(index % 6) + 1}`, cx: x, cy: this.y(value), r: 4 });
    }
  }

  time(at) {
    return clock(this.data.times[at], true, this.now);
  }

  // A chart without new values shows the time of the last ones.
  newest() {
    const last = this.data.times.length - 1;
    return last < 0 || this.now - this.data.times[last] < STALE_MS ? "now" : `last at ${this.time(last)}`;
  }

  legend() {
    const { times, series } = this.data;
    const at = this.at ?? times.length - 1;
    const keys = series.map((each, index) => {
      const key = document.createElement("span");
      key.className = `key paint-${(index % 6) + 1}`;
      const value = document.createElement("b");
      value.textContent = written(each.values[at], this.unit);
      key.append(document.createElement("i"), each.name, value);
      return key;
    });
    const when = document.createElement("span");
    when.className = "when";
    when.textContent = this.at === null ? this.newest() : this.time(at);
    this.caption.replaceChildren(this.caption.querySelector("h3"), ...keys, when);
    const now = series.map((each) => `${each.name} ${written(each.values.at(-1), this.unit)}`).join(", ");
    this.svg.setAttribute("aria-label", `${this.title}, ${this.newest()}: ${now || "nothing yet"}. Arrow keys read it.`);
  }
}
