// Heat maps: the evaluation matrix through time, and transfer between tasks.
const sequential = (share) => `color-mix(in oklab, var(--seq0), var(--seq1) ${(100 * Math.max(0, Math.min(1, share))).toFixed(1)}%)`;
const diverging = (value, most) => `color-mix(in oklab, var(--seq0), var(${value < 0 ? "--neg" : "--pos"}) ${(100 * Math.min(1, Math.abs(value) / (most || 1))).toFixed(1)}%)`;

const LEAN = (35 * Math.PI) / 180, WRITTEN = 34; // The slope of leaning names; pixels that a number takes.
// Two digits; what is nothing on the scale of the picture is not spelt out.
const cellText = (value, most) => (Math.abs(value) >= 0.005 * most ? number(value) : Math.abs(value) < 1e-12 ? "0" : "0.00");

// spec: label, rows: [{text, colours}], columns: [task], cells: Map "row column" → {value, fill, strong, frame, tip}, most: the largest value, until, tell(row, column), open(row, column): on a click or Enter
function heatMap(spec) {
  const host = plot((node, width) => {
    const count = spec.columns.length;
    const longest = Math.max(...spec.rows.map((r) => widthOf(r.text)));
    const left = Math.min(longest + 18, width * 0.45, 230);
    const names = spec.columns.map((t) => fit(short(t), width < 360 ? width * 0.28 : 150)), wide = names.map((text) => widthOf(text));
    const room = (width - left - 4) / count;
    // Names lean over their columns. They stand upright over narrow ones, and where leaning would
    // leave the cells no room for their numbers. None fit the narrowest.
    const beyond = Math.max(0, ...wide.map((w, j) => w * Math.cos(LEAN) - (count - j - 0.5) * Math.min(room, 64)));
    const leaning = (width - left - 4 - beyond) / count;
    const lean = room >= 24 && (leaning >= WRITTEN || room < WRITTEN) ? LEAN : room >= 9.5 ? Math.PI / 2 : 0;
    const side = Math.min(lean === LEAN ? leaning : room, 64);
    const top = lean ? 24 + Math.max(...wide) * Math.sin(lean) : 16;
    const tall = Math.max(Math.min(side, 34), spec.rows.length > 30 ? 8 : 16);
    const height = top + tall * spec.rows.length + 4;
    const picture = svg("svg", { height, viewBox: `0 0 ${width} ${height}`, tabindex: 0, role: "img", "aria-label": `${spec.label}. Arrow keys move between cells.` });
    spec.columns.forEach((task, j) => {
      const x = left + (j + 0.5) * side;
      picture.append(svg("rect", { x: x - Math.min(side * 0.32, 5), y: top - 9, width: Math.min(side * 0.64, 10), height: 5, rx: 1.5, fill: taskColour(task) }));
      const at = lean === LEAN ? x - 2 : x + 4;
      if (lean) picture.append(svg("text", { x: at, y: top - 14, transform: `rotate(${(-lean * 180) / Math.PI} ${at} ${top - 14})`, style: side < 13 ? "font-size:10px" : null }, names[j]));
    });
    const step = Math.max(1, Math.ceil(13 / tall));
    const paint = [];
    spec.rows.forEach((row, i) => {
      const y = top + i * tall;
      if (i % step === 0) picture.append(svg("text", { x: left - 8, y: y + tall / 2 + 4, "text-anchor": "end" }, fit(row.text, left - 14)));
      if (row.colour) picture.append(svg("rect", { x: left - 5, y: y + 2, width: 3, height: Math.max(tall - 4, 1), rx: 1.5, fill: row.colour }));
      spec.columns.forEach((task, j) => {
        const cell = spec.cells.get(`${i} ${task}`);
        const gap = side > 12 && tall > 12 ? 1 : 0.25;
        const box = svg("rect", { x: left + j * side + gap, y: y + gap, width: side - 2 * gap, height: tall - 2 * gap, rx: side > 12 && tall > 12 ? 4 : 0, fill: cell ? cell.fill : "transparent", stroke: cell ? null : "var(--grid)" });
        picture.append(box);
        const parts = [box];
        if (cell && cell.frame) parts.push(picture.appendChild(svg("rect", { x: left + j * side + gap + 1, y: y + gap + 1, width: Math.max(side - 2 * gap - 2, 0.5), height: Math.max(tall - 2 * gap - 2, 0.5), rx: side > 12 ? 3 : 0, fill: "none", stroke: "var(--text)", "stroke-width": side > 12 ? 1.5 : 0.8 })));
        if (cell && side >= WRITTEN && tall >= 16) parts.push(picture.appendChild(svg("text", { x: left + (j + 0.5) * side, y: y + tall / 2 + 4, "text-anchor": "middle", style: `fill:${cell.strong ? "var(--on)" : "var(--text)"}`, "pointer-events": "none" }, cellText(cell.value, spec.most))));
        paint.push({ i, parts });
      });
    });
    const focus = svg("rect", { fill: "none", stroke: "var(--accent)", "stroke-width": 2, rx: 4, visibility: "hidden", "pointer-events": "none" });
    picture.append(focus);
    host.upTo = (last) => { for (const p of paint) for (const part of p.parts) part.setAttribute("opacity", p.i <= last ? 1 : 0.08); };
    host.upTo(spec.until ? spec.until() : spec.rows.length);
    let at = [0, 0];
    const point = (i, j, x, y) => {
      at = [i, j];
      focus.setAttribute("x", left + j * side); focus.setAttribute("y", top + i * tall);
      focus.setAttribute("width", side); focus.setAttribute("height", tall); focus.setAttribute("visibility", "visible");
      tip.show(spec.tell(i, spec.columns[j]), x, y);
    };
    const leave = () => { focus.setAttribute("visibility", "hidden"); tip.hide(); };
    picture.addEventListener("pointermove", (e) => {
      const r = picture.getBoundingClientRect();
      const j = Math.floor((((e.clientX - r.left) / r.width) * width - left) / side);
      const i = Math.floor((((e.clientY - r.top) / r.height) * height - top) / tall);
      if (i >= 0 && j >= 0 && i < spec.rows.length && j < spec.columns.length) point(i, j, e.clientX, e.clientY); else leave();
    });
    if (spec.open) {
      picture.classList.add("opens");
      picture.addEventListener("click", () => { if (focus.getAttribute("visibility") === "visible") spec.open(at[0], spec.columns[at[1]]); });
    }
    picture.addEventListener("pointerleave", leave);
    picture.addEventListener("blur", leave);
    picture.addEventListener("keydown", (e) => {
      if (e.key === "Enter" && spec.open) return spec.open(at[0], spec.columns[at[1]]);
      const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[e.key];
      if (!move) return;
      const i = Math.min(Math.max(at[0] + move[0], 0), spec.rows.length - 1), j = Math.min(Math.max(at[1] + move[1], 0), spec.columns.length - 1);
      const r = picture.getBoundingClientRect();
      point(i, j, r.left + ((left + (j + 0.5) * side) / width) * r.width, r.top + ((top + (i + 0.5) * tall) / height) * r.height);
      e.preventDefault();
    });
    node.replaceChildren(picture);
  }, spec.label);
  return host;
}
function scale(low, middle, high, gradient) {
  return el("span", { class: "scale" }, [el("span", {}, middle), el("span", {}, number(low, 2)), el("i", { style: `background:linear-gradient(90deg in oklab, ${gradient})` }), el("span", {}, number(high, 2))]);
}

function matrixChart(host) {
  const cells = records(DATA.matrix_cells);
  const seen = cells.map((c) => c.value);
  const [low, high] = DATA.bounds || [Math.min(...seen), Math.max(...seen)];
  const index = groupBy(DATA.matrix_rows, (r) => `${r.schedule} ${r.agent}`);
  const schedules = DATA.schedules.filter((c) => DATA.matrix_rows.some((r) => r.schedule === c.schedule));
  const way = scheduleChoice(schedules, index.size, (v) => { state.schedule = v; draw(); });
  const state = { schedule: way.chosen, row: Infinity };
  const grid = el("div", { class: "grid broad" }), note = el("p", { class: "muted small" });
  const word = el("output", { class: "muted" });
  const slider = el("input", { type: "range", min: 0, step: 1, "aria-label": "Evaluations up to", on: { input: () => step(Number(slider.value)) } });
  let maps = [], rows = [], timer = null;
  const rowText = (r) => (r.fresh.length ? (r.fresh.length > 2 ? `+ ${r.fresh.length} tasks` : `+ ${r.fresh.map(short).join(", ")}`) : r.row === 0 ? "before" : "again");
  function step(row) {
    state.row = row;
    slider.value = row;
    const r = rows[row];
    const where = r && (state.schedule !== "all" ? `, block ${r.block}, after ${compact(r.learned)} ${DATA.schedules[r.schedule].unit}` : "");
    word.textContent = r ? `evaluation ${row + 1} of ${rows.length}${where}` : "";
    for (const map of maps) if (map.upTo) map.upTo(row);
  }
  const play = el("button", { type: "button", on: { click: () => {
    if (timer) { clearInterval(timer); timer = null; play.textContent = "Play"; return; }
    let row = state.row >= rows.length - 1 ? 0 : state.row + 1;
    play.textContent = "Stop";
    step(row);
    timer = setInterval(() => {
      row += 1;
      if (row >= rows.length) { clearInterval(timer); timer = null; play.textContent = "Play"; } else step(row);
    }, Math.max(80, Math.min(700, 8000 / rows.length)));
  } } }, "Play");
  function panel(schedule, agent) {
    const own = index.get(`${schedule.schedule} ${agent}`);
    const mine = cells.filter((c) => c.schedule === schedule.schedule && c.agent === agent);
    const columns = DATA.tasks.map((t) => t.name).filter((t) => mine.some((c) => c.task === t));
    const byPlace = new Map(mine.map((c) => {
      const share = (c.value - low) / (high - low || 1);
      return [`${c.row} ${c.task}`, { ...c, fill: sequential(share), strong: share > 0.6, frame: own[c.row].fresh.includes(c.task) }];
    }));
    const map = heatMap({
      label: `${agent}: evaluation matrix`, columns, cells: byPlace, until: () => state.row, most: Math.max(Math.abs(low), Math.abs(high)),
      rows: own.map((r) => ({ text: rowText(r), colour: r.fresh.length === 1 ? taskColour(r.fresh[0]) : null })),
      tell: (i, task) => {
        const c = byPlace.get(`${i} ${task}`);
        const value = c ? `${number(c.value)}${c.sd === null ? "" : ` ± ${number(c.sd)} sd`}, n=${c.n}` : "not evaluated here";
        return tipRows(`${clip(agent, 40)} · Evaluation ${i + 1}, block ${own[i].block}${own[i].fresh.length ? `, after learning ${clip(own[i].fresh.map(short).join(", "), 60)}` : ""}`, [[swatch(taskColour(task)), short(task), value]], c && episodesHint({ agent, task, block: own[i].block }));
      },
      open: (i, task) => byPlace.has(`${i} ${task}`) && openEpisodes({ agent, task, block: own[i].block }),
    });
    maps.push(map);
    const title = state.schedule === "all" ? way.title(schedule) : "";
    return el("div", { class: "panel" }, [el("header", {}, [badge(agent), bdi(agent, agent), el("span", { class: "muted small n" }, `n = ${own[0].n}`)]), title ? el("p", {}, bdi(title)) : null, map]);
  }
  function draw() {
    maps = [];
    const shown = schedules.filter((c) => state.schedule === "all" || c.schedule === state.schedule);
    const parts = shown.flatMap((c) => DATA.agents.map((a) => a.name).filter((a) => index.has(`${c.schedule} ${a}`)).map((a) => [c, a]));
    rows = parts.map(([c, a]) => index.get(`${c.schedule} ${a}`)).reduce((most, own) => (own.length > most.length ? own : most));
    slider.max = rows.length - 1;
    put(grid, parts.map(([c, a]) => panel(c, a)));
    note.textContent = way.note(state.schedule);
    drawInView(grid);
    step(rows.length - 1);
  }
  put(host,
    el("div", { class: "controls" }, [
      way.control,
      el("span", { class: "tools", style: "margin:0" }, play), slider, word,
      el("span", { style: "margin-left:auto" }, scale(low, DATA.measure, high, "var(--seq0), var(--seq1)")),
    ]),
    note, grid, numbers("Evaluation matrix", cells),
  );
  draw();
}

function transferChart(host) {
  const rows = records(DATA.transfer);
  const most = Math.max(...rows.map((r) => Math.abs(r.value ?? 0)), 1e-9);
  const agents = DATA.agents.map((a) => a.name).filter((a) => rows.some((r) => r.agent === a));
  const state = { way: rows.some((r) => r.way === "forward") ? "forward" : "backward" };
  const grid = el("div", { class: "grid broad" });
  function draw() {
    grid.replaceChildren(...agents.map((agent) => {
      const own = rows.filter((r) => r.agent === agent && r.way === state.way);
      if (!own.length) return null;
      const order = DATA.tasks.map((t) => t.name);
      const sources = order.filter((t) => own.some((r) => r.source === t)), targets = order.filter((t) => own.some((r) => r.target === t));
      const cells = new Map(own.map((r) => [`${sources.indexOf(r.source)} ${r.target}`, { ...r, fill: diverging(r.value, most), strong: Math.abs(r.value) / most > 0.8 }]));
      const map = heatMap({
        label: `${agent}: ${state.way} transfer`, columns: targets, cells, most, rows: sources.map((s) => ({ text: short(s), colour: taskColour(s) })),
        tell: (i, target) => {
          const c = cells.get(`${i} ${target}`);
          return tipRows(`${clip(agent, 40)} · from ${short(sources[i])} to ${short(target)}`, [[swatch(taskColour(target)), "contrast", c ? `${number(c.value)}${reach(c)} n=${c.n}` : "not measured: " + (sources[i] === target ? "the same task" : "never learned alone between two evaluations of it")]]);
        },
      });
      return el("div", { class: "panel" }, [el("header", {}, [badge(agent), bdi(agent, agent), el("span", { class: "muted small n" }, `n = ${Math.max(...own.map((r) => r.n))}`)]), map]);
    }).filter(Boolean));
    drawInView(grid);
  }
  const ways = [["forward", "Forward: to tasks not yet learned"], ["backward", "Backward: to tasks learned before"]].filter(([w]) => rows.some((r) => r.way === w));
  put(host,
    el("div", { class: "controls" }, [segments("Direction", ways, state.way, (v) => { state.way = v; draw(); }), el("span", { style: "margin-left:auto" }, scale(-most, "contrast: lost to gained", most, "var(--neg), var(--seq0), var(--pos)"))]),
    grid, numbers("Transfer", rows),
  );
  draw();
}
