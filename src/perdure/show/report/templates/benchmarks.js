// Results as the benchmarks show them: spider charts of several metrics, bars of one by task or by stage.
function scaleOf(found) {
  if (found.bounds) return found.bounds;
  const values = found.rows.flatMap((r) => [r.value, r.low, r.high]).filter((v) => v !== null && v !== undefined);
  return [Math.min(0, ...values), Math.max(0, ...values)];
}
function spider(found) {
  const { rows } = found, [least, most] = scaleOf(found);
  const agents = [...new Set(rows.map((r) => r.agent))], axes = [...new Set(rows.map((r) => r.axis))];
  // As the paper draws many algorithms: a spoke for each, and the metrics as lines.
  const turned = agents.length >= axes.length;
  const [spokes, lines] = turned ? [agents, axes] : [axes, agents];
  const styles = turned ? [...AGENTS.values()] : agents.map((a) => AGENTS.get(a));
  const cell = (line, spoke) => rows.find((r) => (turned ? r.agent === spoke && r.axis === line : r.agent === line && r.axis === spoke));
  const picture = plot((host, width) => {
    const height = Math.min(460, Math.max(300, width * 0.8));
    const names = spokes.map((spoke) => (turned && (width < 520 || spoke.length > 24) ? AGENTS.get(spoke).letter : spoke));
    // Where it is narrow, words stand below each other.
    const words = names.map((name) => (width < 520 ? name.split(" ") : [name]));
    const beside = Math.max(...words.flat().map((word) => widthOf(word, 550)));
    const cx = width / 2, cy = height / 2 + 4, radius = Math.max(Math.min((width / 2 - beside - 6) / 1.12, height / 2 - 40), 40);
    const at = (k, share) => { const t = -Math.PI / 2 + (2 * Math.PI * k) / spokes.length; return [cx + Math.cos(t) * radius * share, cy + Math.sin(t) * radius * share]; };
    const ring = (share) => spokes.map((_, k) => at(k, share).map((v) => v.toFixed(1)).join(" ")).join("L");
    const out = svg("svg", { height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Spider chart of ${axes.join(", ")}` });
    const rings = [0.25, 0.5, 0.75, 1];
    for (const share of rings) out.append(svg("path", { d: `M${ring(share)}z`, fill: "none", class: "axis" }));
    spokes.forEach((spoke, k) => {
      const [x, y] = at(k, 1), [lx, ly] = at(k, 1.12);
      const lines = words[k].map((word, i) => svg("tspan", { x: lx, dy: i ? 13 : null }, word));
      out.append(svg("line", { class: "axis", x1: cx, y1: cy, x2: x, y2: y }), svg("text", { class: "strong", x: lx, y: ly + 4 - 6.5 * (lines.length - 1), "text-anchor": Math.abs(lx - cx) < 4 ? "middle" : lx > cx ? "start" : "end" }, lines));
    });
    lines.forEach((line, i) => {
      const a = styles[i];
      const own = spokes.map((spoke) => cell(line, spoke));
      const spots = own.map((r, k) => (r && r.value !== null ? at(k, Math.max(0, Math.min(1, (r.value - least) / (most - least || 1)))) : null));
      if (spots.every(Boolean)) out.append(svg("path", { d: `M${spots.map((p) => p.map((v) => v.toFixed(1)).join(" ")).join("L")}z`, fill: a.colour, "fill-opacity": 0.06, stroke: a.colour, "stroke-width": 2, "stroke-dasharray": a.dash || null }));
      spots.forEach((p, k) => {
        if (!p) return;
        const r = own[k];
        const dot = mark(a.mark, p[0], p[1], 4.5, { fill: a.colour, stroke: "var(--surface)", tabindex: 0, role: "img", "aria-label": `${r.agent}, ${r.axis}: ${number(r.value)}` });
        const show = () => { const box = dot.getBoundingClientRect(); tip.show(tipRows(r.agent, [["", r.axis, `${number(r.value)}${reach(r)} n=${r.n}`]]), box.right, box.top); };
        for (const event of ["pointerenter", "focus"]) dot.addEventListener(event, show);
        for (const event of ["pointerleave", "blur"]) dot.addEventListener(event, () => tip.hide());
        out.append(dot);
      });
    });
    for (const share of rings) out.append(svg("text", { class: "over", x: cx + 4, y: cy - radius * share + 12 }, number(least + share * (most - least), 2)));
    host.replaceChildren(out);
  }, "Spider chart");
  const missing = rows.filter((r) => r.value === null).map((r) => `${r.agent}, ${r.axis}: – ${r.reason}`);
  const keys = turned ? el("div", { class: "marks" }, axes.map((axis, i) => el("span", {}, [lineMark(styles[i]), axis]))) : agentMarks(agents, true);
  return [keys, picture, missing.length ? el("p", { class: "muted small" }, missing.join("; ")) : null];
}
function barsByTask(found) {
  const { rows, metrics: [{ title }] } = found, agents = [...new Set(rows.map((r) => r.agent))];
  return [agentMarks(agents), rowChart({
    label: `${title} by task`, x: scaleOf(found), each: agents.length > 4 ? 11 : 14, gap: 12,
    rows: [...groupBy(rows, (r) => r.task)].map(([task, own]) => ({ text: short(task), colour: taskColour(task), items: own.map((r) => ({ ...r, bar: true, tip: valueTip(`${r.agent} on ${short(task)}`, r, title.toLowerCase()) })) })),
  })];
}
function barsByStage(found) {
  const { rows, metrics: [{ title }] } = found, agents = [...new Set(rows.map((r) => r.agent))];
  const chart = (task, mine) => rowChart({
    label: `${title} by stage${task && `, ${short(task)}`}`, x: scaleOf(found), each: agents.length > 4 ? 11 : 14, gap: 12,
    rows: [...groupBy(mine, (r) => r.stage)].map(([stage, own]) => ({ text: stage, items: own.map((r) => ({ ...r, bar: true, tip: valueTip(`${r.agent}, ${stage}`, r, title.toLowerCase()) })) })),
  });
  const parts = [...groupBy(rows, (r) => r.task)].map(([task, mine]) => [task ? el("h4", {}, short(task)) : null, chart(task, mine)]);
  return [agentMarks(agents), ...parts.flat()];
}
const PICTURES = { spider, bars: barsByTask, stages: barsByStage };
function benchmarksChart(host) {
  const parts = DATA.benchmarks.filter((b) => PICTURES[b.picture]).map((b) => [
    el("h3", {}, b.title), b.about ? el("p", { class: "muted small" }, b.about) : null, ...PICTURES[b.picture](b), numbers(b.title, b.rows),
  ]);
  put(host, parts.flat());
}
