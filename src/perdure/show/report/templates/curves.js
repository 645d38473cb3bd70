// Performance over the whole lifetime.
function axisOf(schedule) {
  const spans = DATA.spans.filter((s) => s.schedule === schedule.schedule);
  const learned = spans.length ? spans[spans.length - 1].learned + spans[spans.length - 1].amount : 0;
  const learns = spans.filter((s) => s.amount > 0);
  // Where on the axis so much has been learned: the end of a block rather than the start of the next.
  const toX = (amount) => {
    const s = learns.find((one) => amount <= one.learned + one.amount + 1e-9) || learns[learns.length - 1];
    return s ? s.start + ((amount - s.learned) / s.amount) * (s.stop - s.start) : 0;
  };
  const toAmount = (x) => {
    const s = spans.find((one) => x <= one.stop) || spans[spans.length - 1];
    return s.amount ? s.learned + Math.max(0, Math.min(1, (x - s.start) / (s.stop - s.start))) * s.amount : s.learned;
  };
  const ticks = (x0, x1, count) => (learned ? niceTicks(toAmount(x0), toAmount(x1), count).map((a) => ({ at: a === 0 ? learns[0].start : toX(a), text: compact(a) })) : []);
  return { spans, blocks: new Map(spans.map((s) => [s.block, s])), ticks, toAmount, at: (x) => spans.find((s) => x >= s.start && x <= s.stop) };
}

// So many tasks share one picture; of more, each has a row.
const OVERLAID = 4;
function curvesChart(host) {
  const evaluations = records(DATA.evaluations), learning = records(DATA.learning);
  const index = groupBy(evaluations.concat(learning), (r) => `${r.schedule} ${r.agent}`);
  const way = scheduleChoice(DATA.schedules, index.size, (v) => { state.schedule = v; draw(); });
  const rowsFirst = DATA.tasks.length > OVERLAID && DATA.agents.length < 25 ? "tasks" : "agents";
  const state = { schedule: way.chosen, rows: address.get("rows", rowsFirst), show: address.get("show", "mean"), evaluations: true, learning: true, hidden: new Set(address.get("hide", "").split("|").filter(Boolean)) };
  const tasks = DATA.tasks.map((t) => t.name);
  const singles = DATA.singles.flatMap((c) => c.lifetimes.map((life) => ({ ...life, schedule: c.schedule, from: c, rows: null })));
  const facets = el("div", {});
  const many = tasks.length > 12;
  const rowsOf = (single) => {
    if (!single.rows) {
      const has = (name) => (r, i) => ({ ...r, at: i, there: single[name][i] !== null });
      single.rows = {
        evaluations: records(single.from.evaluations).map(has("value")).filter((r) => r.there).map((r) => ({ ...r, mean: single.value[r.at] })),
        learning: records(single.from.learning).map(has("mean")).filter((r) => r.there).map((r) => ({ ...r, mean: single.mean[r.at], min: single.min[r.at], max: single.max[r.at] })),
      };
    }
    return single.rows;
  };

  // A row shows an agent with its tasks, or a task with all agents: lines are drawn as what they are of.
  const agentNames = DATA.agents.map((a) => a.name);
  const lineOf = (r) => (state.rows === "tasks" ? r.agent : r.task);
  const styleOf = (name) => (state.rows === "tasks" ? AGENTS : TASKS).get(name);
  const seriesOf = (name, points, kind, band) => {
    const style = styleOf(name), by = state.rows === "tasks", thin = many && !by;
    const shape = by ? style.mark : "circle";
    const out = [];
    const line = points.map((p) => ({ ...p, y: p.mean, low: band === "range" ? p.min : p.low, high: band === "range" ? p.max : p.high }));
    if (kind === "dots") out.push({ colour: style.colour, lines: [line], marks: by ? 1.8 : 2, opacity: 0.45 });
    else if (kind === "single") out.push({ colour: style.colour, width: 0.9, opacity: 0.45, lines: [...groupBy(line, (p) => p.block).values()] });
    else if (kind === "learning") {
      const blocks = [...groupBy(line, (p) => p.block).values()];
      out.push({ colour: style.colour, dash: by ? "" : style.dash, width: thin ? 1.4 : 1.8, lines: blocks, area: band !== "none" });
    } else {
      // Nothing is measured between evaluations: a faint step holds the last value.
      const probes = line.filter((p) => p.kind === "adapt"), plain = line.filter((p) => p.kind !== "adapt");
      out.push({ colour: style.colour, dash: thin ? style.dash : "", width: 1.2, opacity: 0.34, step: true, lines: [plain] });
      out.push({ colour: style.colour, lines: [plain], marks: thin ? 2.4 : by ? 3.4 : 3.8, mark: shape, whiskers: band !== "none" && !thin });
      if (probes.length) out.push({ colour: style.colour, lines: [probes], marks: 3.4, open: true });
    }
    return out;
  };

  const SINGLE = 3; // So few lifetimes are shown one by one: an interval of theirs says little.
  const seriesFor = (schedule, mine, axis) => {
    const own = (rows) => rows.filter((r) => r.schedule === schedule && mine(r) && !state.hidden.has(r.task));
    const out = [];
    const add = (rows, kind, band) => {
      const placed = kind === "learning" || kind === "single" ? rows : spread(axis, rows);
      for (const [name, points] of groupBy(placed, lineOf)) out.push(...seriesOf(name, points, kind, band));
    };
    const chosen = singles.filter((s) => s.schedule === schedule && (state.rows === "tasks" || mine(s)) && (state.show === "mean" || state.show === "all" || String(s.seed ?? s.lifetime) === state.show));
    const evalsOf = (single) => rowsOf(single).evaluations.filter((r) => mine({ ...r, agent: single.agent }) && !state.hidden.has(r.task)).map((r) => {
      const s = axis.blocks.get(r.block);
      return { ...r, agent: single.agent, kind: s.kind, x: s.amount ? s.stop : (s.start + s.stop) / 2, lifetime: single.lifetime };
    });
    const learnsOf = (single) => rowsOf(single).learning.filter((r) => mine({ ...r, agent: single.agent }) && !state.hidden.has(r.task)).map((r) => ({ ...r, agent: single.agent, lifetime: single.lifetime }));
    if (state.show === "mean" || state.show === "range") {
      const few = state.show === "mean" && own(evaluations).concat(own(learning)).every((r) => r.n <= SINGLE);
      // Bands of many lines hide each other.
      const crowd = new Set(own(learning).map(lineOf)).size > OVERLAID;
      if (state.learning && few && !crowd) for (const single of chosen) add(learnsOf(single), "single", "none");
      if (state.learning) add(own(learning), "learning", few || crowd ? "none" : state.show === "mean" ? "interval" : "range");
      if (state.evaluations && few && singles.length) for (const single of chosen) add(evalsOf(single), "dots", "none");
      if (state.evaluations) add(own(evaluations), "evaluations", few ? "none" : state.show === "mean" ? "interval" : "range");
      return { series: out, rows: { evaluations: own(evaluations), learning: own(learning) } };
    }
    const rows = { evaluations: [], learning: [] };
    for (const single of chosen) {
      const evals = evalsOf(single), learns = learnsOf(single);
      rows.evaluations.push(...evals); rows.learning.push(...learns);
      if (state.learning) add(learns, "learning", state.show === "all" ? "none" : "range");
      if (state.evaluations) add(evals, "evaluations", "none");
    }
    if (state.show === "all") for (const s of out) { s.opacity = Math.max(0.25, 1 / Math.sqrt(Math.max(chosen.length, 1))); if (s.marks) s.marks = 2; if (s.width) s.width = 1.1; }
    return { series: out, rows };
  };

  // Points of one evaluation stand side by side in its block.
  const spread = (axis, points) => points.map((p) => {
    const span = axis.blocks.get(p.block);
    if (!span || span.amount) return p;
    const all = state.rows === "tasks" ? agentNames : span.tasks, place = all.indexOf(lineOf(p)), room = span.stop - span.start;
    return { ...p, x: span.start + room * (0.16 + (0.68 * (place + 0.5)) / all.length) };
  });
  const tell = (axis, schedule, rows) => (x, y) => {
    const span = axis.at(x);
    if (!span) return null;
    const near = rows.learning.filter((r) => Math.abs(r.x - x) < 1e-6 && state.learning).concat(rows.evaluations.filter((r) => r.block === span.block && state.evaluations && (!span.amount || Math.abs(r.x - x) < 1e-6)));
    if (!near.length) return null;
    const what = { learn: "learning", eval: "evaluation", adapt: "adapt, then evaluate" }[span.kind];
    const title = `Block ${span.block}, ${what}${span.before ? ", before deployment" : ""} · ${compact(Math.round(axis.toAmount(x)))} ${schedule.unit}`;
    const sorted = y === null || y === undefined ? near : [...near].sort((a, b) => Math.abs(a.mean - y) - Math.abs(b.mean - y));
    const shown = sorted.slice(0, 12).sort((a, b) => b.mean - a.mean).map((r) => {
      const range = r.min !== undefined && r.min !== r.max ? `, ${number(r.min)} to ${number(r.max)}` : "";
      const of = r.n ? `${reach(r)} n=${r.n}` : range;
      const extra = r.n && state.show === "range" ? range : "";
      return [state.rows === "tasks" ? badge(r.agent) : swatch(taskColour(r.task)), (state.rows === "tasks" ? r.agent : short(r.task)) + (state.show === "all" && r.lifetime ? ` (${r.lifetime})` : ""), `${number(r.mean)}${of}${extra}`];
    });
    const hint = span.amount || !near.length ? "" : episodesHint({ task: near[0].task, block: span.block });
    return tipRows(title, shown, [near.length > 12 ? `and ${near.length - 12} more` : "", hint].filter(Boolean).join("\n"));
  };
  // A mark leads to the episodes that it is the mean of; a key, to those of its evaluation.
  const toEpisodes = (axis, name, rows) => ({ far, at }) => {
    if (!state.evaluations) return;
    const by = state.rows === "tasks" ? { task: name } : { agent: name };
    if (far) {
      const [near] = spread(axis, rows.evaluations).map((p) => [far(p), p]).sort(([a], [b]) => a - b);
      if (near && near[0] < 16) openEpisodes({ agent: near[1].agent ?? name, task: near[1].task, block: near[1].block, life: near[1].lifetime });
    } else {
      const span = axis.at(at);
      if (span && !span.amount && by.task) openEpisodes({ ...by, block: span.block });
    }
  };

  let views = [];
  function facet(schedule, axis, view, name, last) {
    const by = state.rows === "tasks";
    const mine = by ? (r) => r.task === name : (r) => r.agent === name;
    const { series, rows } = seriesFor(schedule.schedule, mine, axis);
    const all = by ? rows.evaluations.concat(rows.learning) : index.get(`${schedule.schedule} ${name}`);
    const n = all.reduce((most, r) => Math.max(most, r.n || 0), 0);
    const unit = `${schedule.unit} of learning${schedule.exact ? "" : " (mean over lifetimes)"}`;
    const ends = [...groupBy(rows.evaluations.length ? rows.evaluations : rows.learning, (r) => r.agent)].map(([agent, own]) => ({ text: agent, colour: AGENTS.get(agent).colour, mark: AGENTS.get(agent).mark, y: own[own.length - 1].mean }));
    const tall = by ? Math.max(110, 34 + 12.5 * ends.length) : index.size > 3 ? 210 : 250;
    const chart = lineChart({
      height: tall + (by && last ? 14 : 0), label: `${by ? short(name) : name}: ${DATA.measure} over the lifetime`, x: [0, schedule.stop], y: null,
      ticks: by && !last ? () => [] : axis.ticks, xLabel: last ? unit : "", view, series, names: by ? ends : [],
      spans: axis.spans.map((s) => ({ ...s, colours: s.tasks.map((t) => (by && t !== name ? "var(--line)" : taskColour(t))) })), tell: tell(axis, schedule, rows), open: toEpisodes(axis, name, rows),
      places: (state.learning ? rows.learning : []).concat(state.evaluations ? rows.evaluations : []).map((r) => r.x),
    });
    const of = state.show === "mean" || state.show === "range" || state.show === "all" ? `n = ${n || singles.filter((s) => s.schedule === schedule.schedule && (by || s.agent === name)).length}` : words.get(state.show).toLowerCase();
    const head = by ? [swatch(taskColour(name)), bdi(short(name), name)] : [badge(name), bdi(name, name)];
    const open = !by && all.length && !all[0].finished ? ", not finished" : "";
    return el("div", { class: "facet" }, [el("header", {}, [head, el("span", { class: "muted" }, `${DATA.measure}, ${of}${open}`)]), chart.host]);
  }
  function draw(zoomed = new Map()) {
    views = [];
    const shown = DATA.schedules.filter((c) => state.schedule === "all" || c.schedule === state.schedule);
    put(facets, shown.flatMap((schedule) => {
      const axis = axisOf(schedule);
      const view = { x: zoomed.get(schedule.schedule) || null, charts: new Set(), schedule: schedule.schedule };
      views.push(view);
      const there = (t) => axis.spans.some((s) => s.tasks.includes(t)) && !state.hidden.has(t);
      const present = state.rows === "tasks" ? tasks.filter(there) : agentNames.filter((a) => index.has(`${schedule.schedule} ${a}`));
      const title = state.schedule === "all" ? way.title(schedule) : "";
      return [title ? el("h3", { class: "way" }, bdi(title)) : null, ...present.map((name) => facet(schedule, axis, view, name, name === present[present.length - 1]))];
    }));
    note.textContent = way.note(state.schedule);
    drawInView(facets);
  }
  const modes = [["mean", "Mean and 95 % interval"], ["range", "Mean and full range"]];
  const points = DATA.singles.reduce((sum, c) => sum + (c.evaluations.n + c.learning.n) * c.lifetimes.length, 0);
  if (singles.length && points < 60000) modes.push(["all", "Every lifetime"]);
  for (const key of new Set(singles.map((s) => String(s.seed ?? s.lifetime)))) modes.push([key, singles.some((s) => s.seed !== null) ? `Seed ${key}` : key]);
  const words = new Map(modes);
  if (!words.has(state.show)) state.show = "mean";
  if (!["tasks", "agents"].includes(state.rows)) state.rows = rowsFirst;
  const caption = el("p", { class: "muted small" }), note = el("p", { class: "muted small" });
  const explain = () => {
    caption.textContent = state.show === "mean" ? `Marks are evaluations; the faint steps between them are not measured. Bands and bars: 95 % interval of the mean over lifetimes; of up to ${SINGLE} lifetimes small dots and thin lines show each, and no bands. Where more than ${OVERLAID} lines share a picture, bands are left out.`
      : state.show === "range" ? "Bands: from the lowest to the highest single experience; bars: from the lowest to the highest lifetime."
      : state.show === "all" ? "A line a lifetime." : "Bands: from the lowest to the highest single experience.";
  };
  const toggles = tasks.map((task) => {
    const button = el("button", { type: "button", class: "toggle", "aria-pressed": String(!state.hidden.has(task)), title: task, on: { click: () => {
      state.hidden.has(task) ? state.hidden.delete(task) : state.hidden.add(task);
      button.setAttribute("aria-pressed", String(!state.hidden.has(task)));
      redraw();
    } } }, [swatch(taskColour(task)), el("span", {}, bdi(short(task)))]);
    return button;
  });
  const all = (on) => el("button", { type: "button", class: "toggle plainly", on: { click: () => {
    state.hidden = new Set(on ? [] : tasks);
    toggles.forEach((b) => b.setAttribute("aria-pressed", String(on)));
    redraw();
  } } }, on ? "all" : "none");
  const redraw = () => { address.set("hide", [...state.hidden].join("|"), ""); draw(new Map(views.map((v) => [v.schedule, v.x]))); explain(); };
  const zoom = (act) => () => { for (const v of views) { const chart = [...v.charts][0]; if (chart) act(chart); } };
  // What had been learned, not the place on the axis, where evaluations take room too.
  const axes = new Map(DATA.schedules.map((c) => [c.schedule, axisOf(c)]));
  const unfinished = evaluations.concat(learning).some((r) => !r.finished);
  const tidy = (what) => ({ x, schedule, finished, ...r }) => {
    const span = axes.get(schedule).blocks.get(r.block);
    const done = what === "evaluation" && !span.amount ? span.learned : axes.get(schedule).toAmount(x);
    return { what, ...(DATA.schedules.length > 1 ? { way: schedule + 1 } : {}), ...r, ...(unfinished ? { finished } : {}), learned: Number(done.toPrecision(5)), unit: DATA.schedules[schedule].unit };
  };
  put(host,
    el("div", { class: "controls" }, [
      way.control,
      tasks.length > 1 ? segments("A row", [["tasks", "A row a task"], ["agents", "A row an agent"]], state.rows, (v) => { state.rows = v; address.set("rows", v, rowsFirst); redraw(); }) : null,
      choice("Show", modes, state.show, (v) => { state.show = v; address.set("show", v, "mean"); redraw(); }),
      check("Evaluations", true, (on) => { state.evaluations = on; redraw(); }),
      check("Learning", true, (on) => { state.learning = on; redraw(); }),
      el("span", { class: "tools" }, [
        el("button", { type: "button", "aria-label": "Zoom in", on: { click: zoom((c) => c.zoomBy(0.5)) } }, "+"),
        el("button", { type: "button", "aria-label": "Zoom out", on: { click: zoom((c) => c.zoomBy(2)) } }, "−"),
        el("button", { type: "button", on: { click: zoom((c) => c.zoomTo(...c.spec.x)) } }, "Reset"),
      ]),
    ]),
    el("div", { class: "toggles", role: "group", "aria-label": "Tasks shown" }, [toggles, all(true), all(false)]),
    note,
    facets,
    caption,
    singles.length < DATA.lifetimes ? el("p", { class: "muted small" }, `Single lifetimes: ${singles.length} of ${DATA.lifetimes} are in this file, the first of each agent.`) : null,
    numbers("Lifetime curves", evaluations.map(tidy("evaluation")).concat(learning.map(tidy("learning")))),
  );
  draw();
  explain();
}
