"use strict";
// Names and numbers come from anywhere: they enter the page as text, never as markup.
const DATA = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of [children].flat(3)) {
    if (child !== null && child !== undefined) node.append(child);
  }
  return node;
}
const el = (tag, attributes, children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, children) => fill(document.createElementNS(SVG, tag), attributes, children);

// A packed table as records: words decoded, a column of one value spread out.
function records(table) {
  const columns = Object.entries(table.columns).map(([name, column]) => {
    if (column.levels) return [name, (i) => column.levels[column.codes[i]]];
    return [name, Array.isArray(column) ? (i) => column[i] : () => column.all];
  });
  return Array.from({ length: table.n }, (_, i) => Object.fromEntries(columns.map(([name, at]) => [name, at(i)])));
}
function groupBy(items, key) {
  const out = new Map();
  for (const item of items) {
    const k = key(item);
    if (!out.has(k)) out.set(k, []);
    out.get(k).push(item);
  }
  return out;
}

function number(value, digits = 3) {
  if (value === null || value === undefined || !isFinite(value)) return "–";
  const size = Math.abs(value);
  let text;
  if (size < 1e-12) return "0"; // What rounding leaves of nothing.
  if (size >= 1e6 || size < 1e-4) text = value.toExponential(digits - 1).replace("e+", "e");
  else if (size < 0.01) text = String(Number(value.toPrecision(2)));
  else {
    const whole = String(Math.floor(size)).length;
    const places = Math.max(digits - whole, 0);
    text = value.toLocaleString("en-US", { minimumFractionDigits: places, maximumFractionDigits: places });
  }
  return text.replace("-", "−");
}
function compact(value) {
  const size = Math.abs(value);
  if (size < 1e-12) return "0";
  const cut = (x) => String(Number(x.toPrecision(3)));
  if (size >= 1e9) return cut(value / 1e9) + "G";
  if (size >= 1e6) return cut(value / 1e6) + "M";
  if (size >= 1e4) return cut(value / 1e3) + "k";
  return value.toLocaleString("en-US", { maximumFractionDigits: 4 }).replace("-", "−");
}
function niceTicks(low, high, count) {
  const raw = (high - low) / Math.max(count, 1);
  if (!(raw > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= raw);
  const out = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) out.push(k * step);
  return out;
}
const reach = (r) => (r.low === null || r.low === undefined ? "" : ` [${number(r.low)}, ${number(r.high)}]`);

const TASKS = new Map(DATA.tasks.map((t, i) => [t.name, { ...t, colour: `var(--t${i})` }]));
const AGENTS = new Map(DATA.agents.map((a, i) => [a.name, { ...a, colour: `var(--a${i})` }]));
const short = (name) => TASKS.get(name)?.label ?? name;
// Text that fits a width: measured, not guessed.
const ruler = document.createElement("canvas").getContext("2d");
function widthOf(text, weight = 400) {
  ruler.font = `${weight} 11.5px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", Arial, sans-serif`;
  return ruler.measureText(text).width;
}
// Names often differ at their ends alone, so that the middle is what is left out.
function clip(text, length) {
  const signs = [...text];
  if (signs.length <= length) return text;
  const head = Math.max(Math.ceil((length - 1) / 2), 1), tail = Math.max(length - 1 - head, 0);
  return signs.slice(0, head).join("") + "…" + signs.slice(signs.length - tail).join("");
}
function fit(text, width, weight) {
  if (widthOf(text, weight) <= width) return text;
  let length = Math.min([...text].length - 1, 60);
  while (length > 2 && widthOf(clip(text, length), weight) > width) length -= 1;
  return clip(text, length);
}
// What tells the ways apart that lifetimes went: the run, the order, the agents, at last the length.
function scheduleTexts(schedules) {
  const orders = schedules.map((c) => c.order.map(short).join(" → "));
  const texts = schedules.map((c, i) => [
    c.curriculum,
    new Set(orders).size > 1 || !c.curriculum ? (orders[i].length > 90 ? c.order.map((t) => clip(short(t), 12)).join(" → ") : orders[i]) : "",
    c.agents.length < DATA.agents.length ? c.agents.join(", ") : "",
  ].filter(Boolean).join(" · "));
  return schedules.map((c, i) => {
    const twin = texts.filter((t) => t === texts[i]).length > 1;
    const spans = twin ? DATA.spans.filter((s) => s.schedule === c.schedule) : [];
    const length = twin ? ` · ${spans.length} blocks, ${compact(Math.round(spans.reduce((sum, s) => sum + s.amount, 0)))} ${c.unit}` : "";
    return clip(texts[i], 160) + length;
  });
}
// So many pictures are shown at once; of more, one way at a time.
const TOGETHER = 6;
function scheduleChoice(schedules, count, act) {
  if (schedules.length < 2) return { chosen: schedules[0].schedule, control: null, note: () => "", title: () => "" };
  const words = scheduleTexts(schedules), texts = new Map(schedules.map((c, i) => [c.schedule, words[i]]));
  const together = count <= TOGETHER;
  const label = new Set(schedules.map((c) => c.order.join(" "))).size > 1 ? "Order" : "Lifetimes";
  const options = schedules.map((c, i) => [c.schedule, `${i + 1}: ${words[i]} (n = ${c.n})`]);
  if (together) options.unshift(["all", `All ${schedules.length}`]);
  const chosen = together ? "all" : schedules[0].schedule;
  return {
    chosen,
    control: choice(label, options, chosen, (v) => act(v === "all" ? v : Number(v))),
    title: (schedule) => `${label === "Order" ? "Order " : ""}${schedules.indexOf(schedule) + 1}: ${texts.get(schedule.schedule)}`,
    note: (now) => {
      if (now === "all") return "";
      const own = schedules.find((c) => c.schedule === now), total = schedules.reduce((sum, c) => sum + c.n, 0);
      const gone = DATA.agents.map((a) => a.name).filter((a) => !own.agents.includes(a));
      return `${own.n} of ${total} lifetimes; the others went another way, which “${label}” shows.${gone.length ? ` Not among these: ${gone.map((a) => clip(a, 30)).join(", ")}.` : ""}`;
    },
  };
}
const taskColour = (name) => (TASKS.has(name) ? TASKS.get(name).colour : "var(--muted)");
const bdi = (text, full) => el("bdi", { title: full || null }, text);
const swatch = (colour) => el("span", { class: "swatch", style: `background:${colour}` });
const badge = (agent) => el("span", { class: "badge", style: `--ink:${AGENTS.get(agent).colour}` }, AGENTS.get(agent).letter);

// Marks tell agents apart where colour does not.
function mark(kind, x, y, size, attributes) {
  const s = size;
  const shapes = {
    square: `M${x - s * 0.88} ${y - s * 0.88}h${s * 1.76}v${s * 1.76}h${-s * 1.76}z`,
    triangle: `M${x} ${y - s * 1.15}L${x + s * 1.1} ${y + s * 0.85}H${x - s * 1.1}z`,
    diamond: `M${x} ${y - s * 1.3}L${x + s * 1.1} ${y}L${x} ${y + s * 1.3}L${x - s * 1.1} ${y}z`,
    cross: `M${x - s} ${y - s * 0.4}h${s * 0.6}v${-s * 0.6}h${s * 0.8}v${s * 0.6}h${s * 0.6}v${s * 0.8}h${-s * 0.6}v${s * 0.6}h${-s * 0.8}v${-s * 0.6}h${-s * 0.6}z`,
    star: `M${x} ${y - s * 1.3}L${x + s * 0.4} ${y - s * 0.4}L${x + s * 1.3} ${y}L${x + s * 0.4} ${y + s * 0.4}L${x} ${y + s * 1.3}L${x - s * 0.4} ${y + s * 0.4}L${x - s * 1.3} ${y}L${x - s * 0.4} ${y - s * 0.4}z`,
  };
  return kind in shapes ? svg("path", { d: shapes[kind], ...attributes }) : svg("circle", { cx: x, cy: y, r: s, ...attributes });
}
function lineMark(a, dashed = true) {
  const line = dashed ? svg("line", { x1: 0, x2: 30, y1: 8, y2: 8, stroke: a.colour, "stroke-width": 2, "stroke-dasharray": a.dash || null }) : null;
  return svg("svg", { width: dashed ? 30 : 14, height: 16, "aria-hidden": "true" }, [line, mark(a.mark, dashed ? 15 : 7, 8, 4, { fill: a.colour })]);
}
function agentMarks(agents, dashed) {
  return el("div", { class: "marks" }, agents.map((name) => el("span", {}, [lineMark(AGENTS.get(name), Boolean(dashed)), badge(name), bdi(name, name)])));
}

// One tooltip for everything, by pointer and by focus.
const tip = {
  box: document.getElementById("tip"),
  show(content, x, y) {
    this.box.replaceChildren(...[content].flat());
    this.box.hidden = false;
    this.shownAt = scrollY;
    const { width, height } = this.box.getBoundingClientRect();
    const left = x + 16 + width > innerWidth ? x - width - 14 : x + 16;
    const top = y + 18 + height > innerHeight ? y - height - 12 : y + 18;
    this.box.style.left = `${Math.max(6, Math.min(left, innerWidth - width - 6))}px`;
    this.box.style.top = `${Math.max(6, top)}px`;
  },
  at(node, content) {
    const r = node.getBoundingClientRect();
    this.show(content, r.left + r.width / 2 - 16, r.bottom - 12);
  },
  hide() { this.box.hidden = true; },
};
function tipRows(title, rows, more) {
  const lines = rows.map(([sign, name, value]) => el("tr", {}, [el("td", {}, [sign, " ", el("bdi", {}, name)]), el("td", {}, value)]));
  return [el("div", { class: "title" }, title), el("table", {}, lines), more ? el("div", { class: "muted" }, more) : ""];
}
function adoptTitles(root) {
  for (const node of root.querySelectorAll("[title]")) {
    node.dataset.tip = node.title;
    node.removeAttribute("title");
  }
}
addEventListener("pointerover", (e) => {
  const node = e.target.closest && e.target.closest("[data-tip], [title]");
  if (!node || node.ownerSVGElement) return;
  if (node.title) adoptTitles(node.parentNode);
  if (node.classList.contains("name") && node.scrollWidth <= node.clientWidth && node.textContent === node.dataset.tip) return;
  tip.show(node.dataset.tip, e.clientX, e.clientY);
});
addEventListener("pointerout", (e) => { if (e.target.closest && e.target.closest("[data-tip]")) tip.hide(); });
addEventListener("focusin", (e) => { if (e.target.dataset && e.target.dataset.tip && e.target.matches(":focus-visible")) tip.at(e.target, e.target.dataset.tip); });
addEventListener("focusout", () => tip.hide());
addEventListener("keydown", (e) => { if (e.key === "Escape") tip.hide(); });
addEventListener("scroll", () => { if (Math.abs(scrollY - tip.shownAt) > 4) tip.hide(); }, { passive: true });

const put = (node, ...children) => node.replaceChildren(...children.flat().filter((c) => c !== null && c !== undefined));

// Controls.
function segments(label, options, chosen, act) {
  const group = `s${segments.count = (segments.count || 0) + 1}`;
  const said = printed(label, options, chosen);
  return [el("fieldset", { class: "segments" }, [el("legend", {}, label), options.map(([value, text]) =>
    el("label", {}, [el("input", { type: "radio", name: group, value, checked: value === chosen, on: { change: () => { said.say(value); act(value); } } }), text]))]), said.node];
}
// Paper has no controls, so it says what they were set to.
function printed(label, options, chosen) {
  const node = el("span", { class: "printed" });
  const say = (value) => { node.textContent = `${label}: ${(options.find(([v]) => String(v) === String(value)) || ["", ""])[1]}`; };
  say(chosen);
  return { node, say };
}
function choice(label, options, chosen, act) {
  const said = printed(label, options, chosen);
  const select = el("select", { on: { change: () => { said.say(select.value); act(select.value); } } },
    options.map(([value, text]) => el("option", { value, selected: String(value) === String(chosen) }, text)));
  return [el("label", {}, [label, select]), said.node];
}
function check(label, on, act) {
  const box = el("input", { type: "checkbox", checked: on, on: { change: () => act(box.checked) } });
  return el("label", {}, [box, label]);
}

// The numbers behind a chart, made when asked for.
function numbers(title, rows) {
  const MOST = 400;
  const box = el("details", { class: "data" }, el("summary", {}, "Numbers"));
  box.addEventListener("toggle", () => {
    if (box.childElementCount > 1 || !rows.length) return;
    const names = Object.keys(rows[0]);
    const whole = new Set(names.filter((k) => rows.every((r) => typeof r[k] !== "number" || Number.isInteger(r[k]))));
    const shown = (k, v) => (typeof v !== "number" ? cell(v) : whole.has(k) ? v.toLocaleString("en-US").replace("-", "−") : number(v, 4));
    const cell = (v) => (v === null || v === undefined ? "" : Array.isArray(v) ? v.join(", ") : String(v));
    const quote = (v) => (/[",\n]/.test(v) ? `"${v.replaceAll('"', '""')}"` : v);
    const copy = el("button", { type: "button", on: { click: async () => {
      const text = [names, ...rows.map((r) => names.map((k) => cell(r[k])))].map((line) => line.map(quote).join(",")).join("\n");
      try { await navigator.clipboard.writeText(text); copy.textContent = "Copied"; } catch { copy.textContent = "The browser refused to copy"; }
    } } }, `Copy ${rows.length.toLocaleString("en-US")} rows as CSV`);
    const body = rows.slice(0, MOST).map((r) => el("tr", {}, names.map((k) => el("td", {}, el("bdi", {}, shown(k, r[k]))))));
    box.append(copy, el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `${title}: numbers` },
      el("table", {}, [el("thead", {}, el("tr", {}, names.map((k) => el("th", { scope: "col" }, k)))), el("tbody", {}, body)])));
    if (rows.length > MOST) box.append(el("p", { class: "muted small" }, `The first ${MOST} rows; the copy has all.`));
  });
  return box;
}

