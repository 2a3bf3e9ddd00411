// What a page is looked at for, in the page itself.

const paint = document.createElement("canvas").getContext("2d", { willReadFrequently: true });

function rgba(colour) {
  paint.clearRect(0, 0, 1, 1);
  paint.fillStyle = colour;
  paint.fillRect(0, 0, 1, 1);
  return [...paint.getImageData(0, 0, 1, 1).data];
}

// Luminance and contrast as the Web Content Accessibility Guidelines define them.
function luminance([red, green, blue]) {
  const [r, g, b] = [red, green, blue].map((each) => each / 255)
    .map((each) => (each <= 0.03928 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
  const [more, less] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (more + 0.05) / (less + 0.05);
}

function behind(node) {
  for (let at = node; at; at = at.parentElement) {
    const colour = rgba(getComputedStyle(at).backgroundColor);
    if (colour[3] > 250) return colour;
  }
  return [255, 255, 255, 255];
}

function unreadable() {
  const poor = new Set();
  for (const node of document.querySelectorAll("body *")) {
    const says = [...node.childNodes].some((each) => each.nodeType === Node.TEXT_NODE && each.data.trim());
    if (!says || !node.checkVisibility() || node.closest(".unseen, [disabled], template, svg")) continue;
    const found = contrast(rgba(getComputedStyle(node).color), behind(node));
    if (found < 4.5) poor.add(`${node.tagName}.${node.className}: ${found.toFixed(2)}`);
  }
  return [...poor];
}

function nameless() {
  const reached = "button, a[href], input:not([type=hidden]), select, textarea, summary, svg[tabindex]";
  const labelled = (node) => [...(node.labels ?? [])].some((each) => each.textContent.trim());
  return [...document.querySelectorAll(reached)]
    .filter((each) => !each.closest("template"))
    .filter((each) => !each.getAttribute("aria-label") && !each.textContent.trim() && !labelled(each))
    .map((each) => each.outerHTML);
}

// What a page would sound like: tables that say what they are, headings without a step left out.
function unspoken() {
  const said = (each) => each.ariaLabel || document.getElementById(each.getAttribute("aria-labelledby"))?.textContent.trim();
  const tables = [...document.querySelectorAll("table")].filter((each) => !said(each)).map((each) => `no name: ${each.outerHTML.slice(0, 80)}`);
  const heads = [...document.querySelectorAll("th:not([scope])")].map((each) => `no scope: ${each.outerHTML}`);
  const levels = [...document.querySelectorAll("main :is(h1, h2, h3, h4)")].filter((each) => each.checkVisibility()).map((each) => Number(each.tagName[1]));
  const steps = levels.filter((level, at) => level - (levels[at - 1] ?? 0) > 1).map((level) => `a step to h${level}`);
  const bars = document.querySelectorAll("main, nav, header").length < 3 ? ["no landmarks"] : [];
  return [...tables, ...heads, ...steps, ...bars];
}

function stickingOut() {
  const width = document.documentElement.clientWidth;
  const scrolls = (each) => {
    for (let at = each.parentElement; at; at = at.parentElement) if (getComputedStyle(at).overflowX !== "visible") return true;
    return false;
  };
  return [...document.querySelectorAll("main *")]
    .filter((each) => each.checkVisibility() && !each.closest(".unseen, svg, dialog") && !scrolls(each))
    .filter((each) => { const box = each.getBoundingClientRect(); return box.width && (box.right > width + 1 || box.left < -1); })
    .map((each) => `${each.tagName}.${each.className} reaches to ${Math.round(each.getBoundingClientRect().right)} of ${width}`);
}

function cut() {
  return [...document.querySelectorAll(".scroll")]
    .filter((each) => each.scrollWidth > each.clientWidth + 1)
    .map((each) => `${each.id || each.parentElement.id}: ${each.scrollWidth} in ${each.clientWidth}`);
}

async function shifted() {
  let sum = 0;
  const watcher = new PerformanceObserver((list) => list.getEntries().forEach((each) => { sum += each.value; }));
  watcher.observe({ type: "layout-shift", buffered: true });
  await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  return sum;
}
