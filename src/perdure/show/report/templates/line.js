// Lines with bands and points over shaded spans: hover, keys, and zoom along x.
//
// spec: height, label, x: [low, high], y: [low, high] or null, yLabel, ticks(low, high, count) → [{at, text}],
// spans: [{start, stop, kind, colours}], series: [{colour, dash, width, opacity, lines: [[point]], area, step, edges, marks, open}],
// points are {x, y, low, high}; places: where values are read, by default at every point; tell(x, y) → tooltip content; open({far(point) in pixels} or {at: x}): on a click or Enter; view: {x, charts}, shared by charts that zoom together.
function lineChart(spec) {
  const named = spec.names || [];
  const room = Math.max(0, ...named.map((s) => widthOf(s.text, 600)));
  const margin = { top: spec.spans ? 16 : 10, right: named.length ? Math.min(room, 130) + 20 : 12, bottom: spec.xLabel ? 40 : 26, left: 46 };
  const view = spec.view || { x: null, charts: new Set() };
  let chart = null;

  function draw(host, width) {
    const inner = { width: width - margin.left - margin.right, height: spec.height - margin.top - margin.bottom };
    const [x0, x1] = view.x || spec.x;
    const [y0, y1] = spec.y || extent(spec.series, x0, x1);
    const px = (x) => margin.left + ((x - x0) / (x1 - x0 || 1)) * inner.width;
    const py = (y) => margin.top + (1 - (y - y0) / (y1 - y0 || 1)) * inner.height;
    const id = `c${lineChart.count = (lineChart.count || 0) + 1}`;
    const bottom = margin.top + inner.height;
    const body = svg("g", { "clip-path": `url(#${id})` });
    const top = svg("g");
    for (const s of spec.spans || []) {
      const left = Math.max(px(s.start), margin.left), right = Math.min(px(s.stop), width - margin.right);
      if (right <= left) continue;
      if (s.kind !== "learn") body.append(svg("rect", { class: s.kind === "adapt" ? "adapt" : "shade", x: left, width: right - left, y: margin.top, height: inner.height }));
      else s.colours.forEach((colour, i) => {
        const part = (right - left) / s.colours.length;
        top.append(svg("rect", { x: left + i * part + 0.5, width: Math.max(part - 1, 0.5), y: margin.top - 10, height: 4, rx: 2, fill: colour, "fill-opacity": s.before ? 0.45 : 1 }));
      });
    }
    for (const y of niceTicks(y0, y1, Math.max(2, Math.floor(inner.height / 45)))) {
      body.append(svg("line", { class: "gridline", x1: margin.left, x2: width - margin.right, y1: py(y), y2: py(y) }));
      top.append(svg("text", { x: margin.left - 8, y: py(y) + 4, "text-anchor": "end" }, compact(y)));
    }
    let last = -Infinity;
    for (const { at, text } of spec.ticks(x0, x1, Math.max(2, Math.floor(inner.width / 62)))) {
      const x = px(at);
      if (x < margin.left - 1 || x > width - margin.right + 1 || x - last < 42) continue;
      last = x;
      top.append(svg("line", { class: "axis", x1: x, x2: x, y1: bottom, y2: bottom + 4 }), svg("text", { x, y: bottom + 17, "text-anchor": "middle" }, text));
    }
    top.append(svg("line", { class: "axis", x1: margin.left, x2: width - margin.right, y1: bottom, y2: bottom }));
    if (spec.xLabel) top.append(svg("text", { x: width - margin.right, y: bottom + 34, "text-anchor": "end" }, spec.xLabel));
    const coord = (p, y) => `${px(p.x).toFixed(1)} ${py(y).toFixed(1)}`;
    for (const s of spec.series) {
      // A step holds its value up to the next point.
      const join = (p, y, i) => (i === 0 ? `M${coord(p, y)}` : s.step ? `H${px(p.x).toFixed(1)}V${py(y).toFixed(1)}` : `L${coord(p, y)}`);
      const path = (points) => points.map((p, i) => join(p, p.y, i)).join("");
      if (s.area) {
        const area = s.lines.map((points) => {
          const there = points.filter((p) => p.low !== null && p.low !== undefined);
          if (there.length < 2) return "";
          const back = there.map((p, i) => [p, there[Math.max(i - 1, 0)]]).reverse();
          const lower = s.step ? back.map(([p, q]) => `V${py(p.low).toFixed(1)}H${px(p.x).toFixed(1)}V${py(q.low).toFixed(1)}`) : back.map(([p]) => `L${coord(p, p.low)}`);
          return there.map((p, i) => join(p, p.high, i)).join("") + lower.join("") + "z";
        }).join("");
        body.append(svg("path", { d: area, fill: s.colour, "fill-opacity": s.areaOpacity || 0.14, stroke: s.edges ? s.colour : null, "stroke-width": 0.8, "stroke-opacity": 0.45, "stroke-dasharray": s.edges ? s.dash || null : null }));
      }
      if (s.width) body.append(svg("path", { d: s.lines.map(path).join(""), fill: "none", stroke: s.colour, "stroke-width": s.width, "stroke-opacity": s.opacity ?? 1, "stroke-dasharray": s.dash || null, "stroke-linejoin": "round", "stroke-linecap": "round" }));
      if (s.whiskers) {
        const d = s.lines.flat().filter((p) => p.low !== null && p.low !== undefined).map((p) => `M${coord(p, p.low)}V${py(p.high).toFixed(1)}`).join("");
        body.append(svg("path", { d, stroke: s.colour, "stroke-width": 1.4, "stroke-opacity": 0.55, fill: "none" }));
      }
      if (s.marks) {
        const r = s.marks;
        if (s.mark && s.mark !== "circle") {
          for (const p of s.lines.flat()) body.append(mark(s.mark, px(p.x), py(p.y), r, { fill: s.colour, stroke: "var(--surface)", "stroke-width": 0.8, "fill-opacity": s.opacity ?? 1 }));
          continue;
        }
        const d = s.lines.flat().map((p) => `M${(px(p.x) - r).toFixed(1)} ${py(p.y).toFixed(1)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`).join("");
        body.append(svg("path", { d, fill: s.open ? "var(--surface)" : s.colour, stroke: s.open ? s.colour : "var(--surface)", "stroke-width": s.open ? 1.6 : 0.8, "fill-opacity": s.opacity ?? 1 }));
      }
    }
    // Names at the ends of lines, moved apart where they would lie upon each other.
    const placed = named.map((s) => ({ ...s, at: py(s.y) })).sort((a, b) => a.at - b.at);
    placed.forEach((s, i) => { if (i) s.at = Math.max(s.at, placed[i - 1].at + 12.5); });
    const over = placed.length ? Math.max(0, placed[placed.length - 1].at - (bottom + 3)) : 0;
    placed.forEach((s, i) => { s.at = Math.max(s.at - over, margin.top + 2 + 12.5 * i - (placed.length > 1 ? 6 : 0)); });
    for (const s of placed) top.append(mark(s.mark, width - margin.right + 9, s.at, 3.2, { fill: s.colour }), svg("text", { x: width - margin.right + 16, y: s.at + 4, style: `fill:${s.colour};font-weight:600` }, fit(s.text, margin.right - 18, 600)));
    const cross = svg("line", { class: "cross", y1: margin.top, y2: bottom, visibility: "hidden" });
    const select = svg("rect", { class: "select", y: margin.top, height: inner.height, visibility: "hidden" });
    const picture = svg("svg", { height: spec.height, viewBox: `0 0 ${width} ${spec.height}`, tabindex: 0, role: "img", "aria-label": `${spec.label}. Arrow keys read values, plus and minus zoom, 0 shows all.` },
      [svg("clipPath", { id }, svg("rect", { x: margin.left, y: margin.top - 6, width: Math.max(inner.width, 1), height: inner.height + 12 })), body, top, select, cross]);
    host.replaceChildren(picture);
    chart = { picture, cross, select, px, py, x0, x1, y0, y1, width, host };
    const toX = (clientX) => {
      const r = picture.getBoundingClientRect();
      const x = ((clientX - r.left) / r.width) * width;
      return x0 + ((x - margin.left) / (inner.width || 1)) * (x1 - x0);
    };
    const toY = (clientY) => y0 + (1 - (clientY - picture.getBoundingClientRect().top - margin.top) / inner.height) * (y1 - y0);
    let from = null, cursor = null;
    const places = [...new Set(spec.places || spec.series.flatMap((s) => s.lines.flat().map((p) => p.x)))].sort((a, b) => a - b);
    const point = (x, clientX, clientY, y) => {
      const near = nearest(places, x);
      if (near === null || near < x0 || near > x1) return;
      cross.setAttribute("x1", px(near)); cross.setAttribute("x2", px(near)); cross.setAttribute("visibility", "visible");
      cursor = near;
      const content = spec.tell(near, y);
      if (content) tip.show(content, clientX, clientY); else tip.hide();
    };
    const leave = () => { cross.setAttribute("visibility", "hidden"); select.setAttribute("visibility", "hidden"); from = cursor = null; tip.hide(); };
    picture.addEventListener("pointermove", (e) => {
      const x = toX(e.clientX);
      if (from !== null && Math.abs(px(x) - px(from)) > 4) {
        const [a, b] = [Math.max(Math.min(from, x), x0), Math.min(Math.max(from, x), x1)];
        select.setAttribute("x", px(a)); select.setAttribute("width", Math.max(px(b) - px(a), 0)); select.setAttribute("visibility", "visible");
        tip.hide();
      } else if (x >= x0 && x <= x1) point(x, e.clientX, e.clientY, toY(e.clientY));
    });
    picture.addEventListener("pointerdown", (e) => {
      if (e.pointerType === "mouse" && e.button === 0 && spec.view) { from = toX(e.clientX); e.preventDefault(); }
    });
    picture.addEventListener("pointerup", (e) => {
      if (from === null) return;
      const [a, b] = [from, toX(e.clientX)].sort((p, q) => p - q);
      from = null;
      if (px(b) - px(a) > 8) zoomTo(Math.max(a, spec.x[0]), Math.min(b, spec.x[1]));
    });
    if (spec.open) {
      let pressed = null;
      picture.addEventListener("pointerdown", (e) => { pressed = e.clientX; });
      picture.addEventListener("click", (e) => {
        const r = picture.getBoundingClientRect(), x = e.clientX - r.left, y = e.clientY - r.top;
        if (pressed === null || Math.abs(e.clientX - pressed) < 5) spec.open({ far: (p) => Math.hypot(px(p.x) - x, py(p.mean) - y) });
      });
    }
    picture.addEventListener("pointerleave", leave);
    picture.addEventListener("dblclick", () => spec.view && zoomTo(...spec.x));
    picture.addEventListener("blur", leave);
    picture.addEventListener("keydown", (e) => {
      const move = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[e.key];
      if (move) {
        const inside = places.filter((p) => p >= x0 && p <= x1);
        if (!inside.length) return;
        const i = cursor === null ? -1 : inside.indexOf(cursor);
        const next = inside[Math.min(Math.max(i + move, 0), inside.length - 1)];
        const r = picture.getBoundingClientRect();
        point(next, r.left + (px(next) / width) * r.width, r.top + r.height / 2, null);
      } else if (e.key === "Enter" && spec.open && cursor !== null) return spec.open({ at: cursor });
      else if (!spec.view) return;
      else if (e.key === "+" || e.key === "=") zoomBy(0.5);
      else if (e.key === "-") zoomBy(2);
      else if (e.key === "0") zoomTo(...spec.x);
      else return;
      e.preventDefault();
    });
  }
  function zoomTo(a, b) {
    const whole = a <= spec.x[0] && b >= spec.x[1];
    if (b - a < (spec.x[1] - spec.x[0]) * 1e-4) return;
    view.x = whole ? null : [a, b];
    for (const other of view.charts) other.redraw();
  }
  function zoomBy(factor) {
    const [a, b] = view.x || spec.x;
    const half = ((b - a) / 2) * factor, middle = (a + b) / 2;
    zoomTo(Math.max(middle - half, spec.x[0]), Math.min(middle + half, spec.x[1]));
  }
  const host = plot(draw, spec.label);
  host.style.minHeight = `${spec.height}px`;
  const api = { host, zoomTo, zoomBy, spec, redraw() { if (chart) { const focus = document.activeElement === chart.picture; draw(host, chart.width); if (focus) chart.picture.focus({ preventScroll: true }); } } };
  view.charts.add(api);
  return api;
}
function nearest(sorted, x) {
  if (!sorted.length) return null;
  let low = 0, high = sorted.length - 1;
  while (high - low > 1) { const mid = (low + high) >> 1; if (sorted[mid] < x) low = mid; else high = mid; }
  return Math.abs(sorted[low] - x) <= Math.abs(sorted[high] - x) ? sorted[low] : sorted[high];
}
function extent(series, x0, x1) {
  let low = Infinity, high = -Infinity;
  for (const s of series) for (const line of s.lines) for (const p of line) {
    if (p.x < x0 || p.x > x1) continue;
    const inArea = (s.area || s.whiskers) && p.low !== null && p.low !== undefined;
    low = Math.min(low, inArea ? p.low : p.y); high = Math.max(high, inArea ? p.high : p.y);
  }
  // Limits may lie beyond what the measure can be; the picture does not.
  if (DATA.bounds) { const [a, b] = DATA.bounds; return [a - 0.03 * (b - a), b + 0.03 * (b - a)]; }
  if (!isFinite(low)) return [0, 1];
  const pad = (high - low) * 0.06 || Math.abs(high) * 0.1 || 1;
  return [low - pad, high + pad];
}
const plainTicks = (low, high, count) => niceTicks(low, high, count).map((at) => ({ at, text: compact(at) }));
