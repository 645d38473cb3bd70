// Values with intervals on one axis, a row each: forgetting, distributions, improvement.
//
// spec: label, rows: [{text, colour, items: [{agent, value, low, high, dots, tip}]}], x: [low, high], zero, tick
function rowChart(spec) {
  return plot((host, width) => {
    const longest = Math.max(...spec.rows.map((r) => (r.badge ? 10 : widthOf(r.text, 550) + (r.colour ? 16 : 0))));
    const left = Math.min(longest + 24, width * 0.36, 210);
    const right = 14, top = 6;
    const each = spec.each || 16;
    const heights = spec.rows.map((r) => Math.max(r.items.length * each, 18) + (spec.gap ?? 8));
    const bottom = top + heights.reduce((a, b) => a + b, 0);
    const height = bottom + 24;
    const [x0, x1] = spec.x;
    const px = (x) => left + ((x - x0) / (x1 - x0 || 1)) * (width - left - right);
    const picture = svg("svg", { height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img", "aria-label": `${spec.label}. Arrow keys read values.` });
    let last = -Infinity;
    for (const at of niceTicks(x0, x1, Math.max(2, Math.floor((width - left - right) / 52)))) {
      if (px(at) - last < 40) continue;
      last = px(at);
      picture.append(svg("line", { class: "gridline", x1: px(at), x2: px(at), y1: top, y2: bottom }), svg("text", { x: px(at), y: bottom + 16, "text-anchor": "middle" }, compact(at)));
    }
    if (spec.zero !== undefined && spec.zero >= x0 && spec.zero <= x1) picture.append(svg("line", { class: "zero", x1: px(spec.zero), x2: px(spec.zero), y1: top, y2: bottom }));
    const spots = [];
    let y = top;
    spec.rows.forEach((row, i) => {
      if (row.badge) {
        const a = AGENTS.get(row.badge);
        picture.append(svg("rect", { x: 0, y: y + heights[i] / 2 - 9, width: 18, height: 18, rx: 6, fill: a.colour }), svg("text", { x: 9, y: y + heights[i] / 2 + 4, "text-anchor": "middle", style: "fill:var(--on);font-weight:650;font-size:11px" }, a.letter));
      } else {
        if (row.colour) picture.append(svg("rect", { x: 0, y: y + heights[i] / 2 - 5, width: 10, height: 10, rx: 3, fill: row.colour }));
        picture.append(svg("text", { class: "strong", x: row.colour ? 16 : 0, y: y + heights[i] / 2 + 4 }, fit(row.text, left - (row.colour ? 28 : 12), 550)));
      }
      const block = row.items.length * each;
      row.items.forEach((item, k) => {
        const cy = y + (heights[i] - block) / 2 + (k + 0.5) * each;
        const style = AGENTS.get(item.agent) || { colour: "var(--accent)", mark: "circle" };
        const cut = (v) => Math.max(left - 4, Math.min(width - right + 4, px(v)));
        const has = (v) => v !== null && v !== undefined;
        if (item.bar && has(item.value)) picture.append(svg("rect", { x: Math.min(px(0), px(item.value)), width: Math.abs(px(item.value) - px(0)), y: cy - each * 0.36, height: each * 0.72, rx: 3, fill: item.colour || style.colour, "fill-opacity": 0.35 }));
        if (has(item.low)) picture.append(item.wide
          ? svg("rect", { x: cut(item.low), width: Math.max(cut(item.high) - cut(item.low), 1), y: cy - 4, height: 8, rx: 4, fill: style.colour, "fill-opacity": 0.16 })
          : svg("line", { x1: cut(item.low), x2: cut(item.high), y1: cy, y2: cy, stroke: item.colour || style.colour, "stroke-width": 2.2, "stroke-opacity": 0.5, "stroke-linecap": "round" }));
        // An interval that goes on beyond the picture ends in an arrow.
        if (has(item.low)) for (const [over, x, way] of [[item.low < x0, cut(item.low), -1], [item.high > x1, cut(item.high), 1]]) {
          if (over) picture.append(svg("path", { class: "goes-on", d: `M${x} ${cy - 3.6}L${x + 5 * way} ${cy}L${x} ${cy + 3.6}z`, fill: item.colour || style.colour }));
        }
        (item.dots || []).forEach((v, d) => picture.append(mark(style.mark, px(v), cy + (((d * 7) % 5) - 2) * Math.min(1.4, each / 14), 2.7, { fill: style.colour, "fill-opacity": 0.6 })));
        if (has(item.value)) picture.append(item.wide
          ? svg("line", { x1: px(item.value), x2: px(item.value), y1: cy - 7, y2: cy + 7, stroke: style.colour, "stroke-width": 2.4, "stroke-linecap": "round" })
          : mark(style.mark, cut(item.value), cy, 4.2, { fill: style.colour, stroke: "var(--surface)", "stroke-width": 1 }));
        else picture.append(svg("text", { x: left, y: cy + 4 }, fit(item.reason ? `– ${item.reason}` : "–", width - left - right)));
        spots.push({ y: cy, x: has(item.value) ? cut(item.value) : left, tip: item.tip });
      });
      y += heights[i];
    });
    const cross = svg("rect", { x: left - 6, width: width - left - right + 12, height: each, rx: 5, fill: "var(--accent)", "fill-opacity": 0.07, visibility: "hidden", "pointer-events": "none" });
    picture.prepend(cross);
    let at = -1;
    const point = (k, x, yAt) => { at = k; cross.setAttribute("y", spots[k].y - each / 2); cross.setAttribute("visibility", "visible"); tip.show(spots[k].tip(), x, yAt); };
    const leave = () => { cross.setAttribute("visibility", "hidden"); tip.hide(); };
    picture.addEventListener("pointermove", (e) => {
      const r = picture.getBoundingClientRect();
      const at_ = ((e.clientY - r.top) / r.height) * height;
      const k = spots.findIndex((s) => Math.abs(s.y - at_) <= each / 2 + 2);
      if (k >= 0) point(k, e.clientX, e.clientY); else leave();
    });
    picture.addEventListener("pointerleave", leave);
    picture.addEventListener("blur", leave);
    picture.addEventListener("keydown", (e) => {
      const move = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 }[e.key];
      if (!move || !spots.length) return;
      const k = Math.min(Math.max(at + move, 0), spots.length - 1);
      const r = picture.getBoundingClientRect();
      point(k, r.left + (spots[k].x / width) * r.width, r.top + (spots[k].y / height) * r.height);
      e.preventDefault();
    });
    host.replaceChildren(picture);
  }, spec.label);
}
function rangeOf(values, pad = 0.06) {
  const there = values.filter((v) => v !== null && v !== undefined && isFinite(v));
  if (!there.length) return [0, 1];
  const low = Math.min(...there), high = Math.max(...there);
  const room = (high - low) * pad || Math.abs(high) * 0.1 || 0.5;
  return [low - room, high + room];
}
const valueTip = (title, r, what) => () => tipRows(title, [["", what || DATA.measure, r.value === null ? `– ${r.reason}` : `${number(r.value)}${reach(r)} n=${r.n}`]], r.dropped ? `${r.dropped} undefined lifetimes left out` : "");

function forgettingChart(host) {
  const rows = records(DATA.forgetting);
  const agents = DATA.agents.map((a) => a.name).filter((a) => rows.some((r) => r.agent === a));
  const x = rangeOf(rows.flatMap((r) => [r.value, r.low, r.high, 0]));
  if (DATA.bounds) { x[0] = Math.max(x[0], DATA.bounds[0] - DATA.bounds[1]); x[1] = Math.min(x[1], DATA.bounds[1]); }
  put(host,
    agentMarks(agents),
    rowChart({
      label: "Forgetting by task", x, zero: 0, each: agents.length > 4 ? 11 : 14, gap: 10,
      rows: [...groupBy(rows, (r) => r.task)].map(([task, own]) => ({ text: short(task), colour: taskColour(task), items: own.map((r) => ({ ...r, tip: valueTip(`${r.agent} on ${short(task)}`, r, "forgotten") })) })),
    }),
    numbers("Forgetting", rows),
  );
}

function distributionsChart(host) {
  const rows = records(DATA.distributions);
  const cells = JSON.parse(document.getElementById("cells").textContent);
  const agents = DATA.agents.map((a) => a.name);
  const [defined, undefinedOnes] = [[], []];
  for (const one of groupBy(rows, (r) => r.metric)) (one[1].some((r) => r.value !== null) ? defined : undefinedOnes).push(one);
  const panels = defined.map(([metric, own]) => {
    const about = cells.metrics.find((m) => m.metric === metric);
    const found = cells.cells.filter((c) => c.metric === metric);
    const x = rangeOf(own.map((r) => r.value).concat(found.flatMap((c) => [c.low, c.high])));
    return el("div", { class: "panel" }, [
      el("header", {}, [about.title, el("span", { class: "muted" }, about.better === "higher" ? "↑" : "↓")]),
      el("p", {}, metric),
      rowChart({
        label: `${about.title} of each lifetime`, x, zero: 0, each: 22, gap: 4,
        rows: agents.map((agent) => {
          const c = found.find((f) => f.agent === agent);
          const mine = own.filter((r) => r.agent === agent);
          return { text: agent, badge: agent, items: [{ agent, ...c, wide: true, dots: mine.map((r) => r.value).filter((v) => v !== null), tip: () => tipRows(agent, [["", "mean", c.value === null ? `– ${c.reason}` : `${number(c.value)}${reach(c)} n=${c.n}`]].concat(mine.slice(0, 12).map((r) => ["", r.seed === null ? r.lifetime : `seed ${r.seed}`, r.value === null ? `– ${r.reason}` : number(r.value)])), mine.length > 12 ? `and ${mine.length - 12} more` : "") }] };
        }),
      }),
    ]);
  });
  // Metrics without a value share a line for each reason.
  const reasons = groupBy(undefinedOnes.map(([metric]) => metric), (metric) => cells.cells.filter((c) => c.metric === metric).map((c) => c.reason).find(Boolean) || "no value");
  const lines = [...reasons].map(([reason, metrics]) => el("li", {}, [el("span", { class: "mono" }, metrics.join(", ")), `: ${reason}`]));
  put(host, panels.length ? agentMarks(agents) : null, el("div", { class: "grid" }, panels),
    lines.length ? [el("p", { class: "muted small" }, "Undefined in every lifetime:"), el("ul", { class: "notes muted" }, lines)] : null, numbers("Distributions", rows));
}

// More pairs than this take the width of the page.
const LONG = 10;
const BANDS = 3; // Bands of more agents hide each other; tooltip and numbers have them.
const percent = (share) => (100 * share).toFixed(1);
function profilesChart(host) {
  const rows = records(DATA.profiles);
  const by = groupBy(rows, (r) => r.agent);
  const places = [...new Set(rows.map((r) => r.threshold))].sort((p, q) => p - q);
  const end = DATA.bounds ? DATA.bounds[1] : places[places.length - 1];
  // The last step goes on to the end of the axis.
  const line = (points) => points.concat({ ...points[points.length - 1], threshold: end }).map((p) => ({ x: p.threshold, y: p.share, low: p.low, high: p.high }));
  const style = (agent) => ({ colour: AGENTS.get(agent).colour, dash: AGENTS.get(agent).dash, width: 2.2, area: by.size <= BANDS, areaOpacity: by.size > 2 ? 0.03 : 0.08, step: true, edges: true });
  const chart = lineChart({
    height: 290, label: "Performance profile", x: [places[0], end], y: [-0.02, 1.02], ticks: plainTicks, xLabel: `threshold of final ${DATA.measure}`, places,
    series: [...by].map(([agent, points]) => ({ ...style(agent), lines: [line(points)] })),
    tell: (at) => tipRows(`final ${DATA.measure} above ${number(at)}`, [...by].map(([agent, points]) => { const p = points.find((q) => q.threshold === at); return [badge(agent), agent, `${percent(p.share)} %${p.low === null ? "" : ` [${percent(p.low)}, ${percent(p.high)}]`} n=${p.n}`]; })),
  });
  const note = by.size > BANDS ? el("p", { class: "muted small" }, `The bands of ${by.size} agents would hide each other: they are in the tooltips and the numbers.`) : null;
  put(host, agentMarks([...by.keys()], true), chart.host, note, numbers("Performance profile", rows));
}

function improvementChart(host) {
  const rows = DATA.improvement, sums = DATA.aggregates;
  const parts = [agentMarks(DATA.agents.map((a) => a.name).filter((a) => sums.some((r) => r.agent === a)))];
  const tell = (r) => () => tipRows(`${r.a} over ${r.b}`, [["", "probability", r.value === null ? `– ${r.reason}` : `${number(r.value)}${reach(r)} n=${r.n}`]], `${r.method}${r.dropped ? `; ${r.dropped} left out` : ""}`);
  const chart = (some) => rowChart({
    label: "Probability of improvement", x: [0, 1], zero: 0.5, each: 22, gap: 6,
    rows: some.map((r) => ({ text: `${AGENTS.get(r.a).letter} over ${AGENTS.get(r.b).letter}`, items: [{ ...r, agent: r.a, tip: tell(r) }] })),
  });
  if (rows.length) {
    // Many pairs stand in columns.
    const each = rows.length > LONG ? Math.ceil(rows.length / 3) : rows.length;
    const columns = Array.from({ length: Math.ceil(rows.length / each) }, (_, k) => chart(rows.slice(k * each, (k + 1) * each)));
    parts.push(columns.length > 1 ? el("div", { class: "grid" }, columns) : columns[0], numbers("Probability of improvement", rows));
  }
  const panels = [...groupBy(sums, (r) => r.statistic)].map(([statistic, own]) => {
    const x = rangeOf(own.flatMap((r) => [r.value, r.low, r.high]));
    return el("div", { class: "panel" }, [
      el("p", {}, statistic === "IQM" ? `Interquartile mean of final ${DATA.measure}; interval: ${own[0].method}` : `Mean of final ${DATA.measure}; interval: ${own[0].method.replace("mean, ", "")}`),
      rowChart({ label: `${statistic} of final scores`, x, each: 20, gap: 2, rows: own.map((r) => ({ text: r.agent, badge: r.agent, items: [{ ...r, tip: valueTip(r.agent, r, statistic) }] })) }),
    ]);
  });
  put(host, ...parts, el("div", { class: rows.length > LONG ? "grid broad apart" : "apart" }, panels));
}
