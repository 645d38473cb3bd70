// Each task's learning beside its single-task expert's.
function expertsChart(host) {
  const rows = records(DATA.experts);
  const agents = DATA.agents.map((a) => a.name).filter((a) => rows.some((r) => r.agent === a));
  const state = { agent: agents[0] };
  const grid = el("div", { class: "grid" });
  function draw() {
    const own = rows.filter((r) => r.agent === state.agent);
    const longest = own.reduce((most, r) => Math.max(most, r.x), 0);
    grid.replaceChildren(...[...groupBy(own, (r) => r.task)].map(([task, points]) => {
      const by = groupBy(points, (p) => p.who);
      const style = TASKS.get(task);
      const as = (who) => [(by.get(who) || []).map((p) => ({ ...p, y: p.mean }))];
      const score = DATA.expert_scores.find((s) => s.agent === state.agent && s.task === task) || {};
      const n = (who) => Math.max(0, ...(by.get(who) || []).map((p) => p.n));
      const chart = lineChart({
        height: 160, label: `${task}: learning beside its expert`, x: [0, longest * 1.02], y: null, ticks: plainTicks,
        series: [
          { colour: style.colour, width: 2.2, area: true, lines: as("lifelong") },
          { colour: "var(--text)", opacity: 0.7, dash: "4 4", width: 1.4, area: true, areaOpacity: 0.07, lines: as("expert") },
        ],
        tell: (x) => {
          const near = ["lifelong", "expert"].map((who) => [who, (by.get(who) || []).reduce((best, p) => (!best || Math.abs(p.x - x) < Math.abs(best.x - x) ? p : best), null)]);
          return tipRows(`${compact(Math.round(x))} steps of learning it`, near.filter(([, p]) => p).map(([who, p]) => [swatch(who === "expert" ? "var(--text)" : style.colour), who, `${number(p.mean)}${reach(p)} n=${p.n}`]));
        },
      });
      return el("div", { class: "panel" }, [
        el("header", {}, [swatch(style.colour), bdi(short(task), task)]),
        el("p", {}, `RP ${number(score.rp)} · SE ${number(score.se)} · n = ${n("lifelong")}, ${n("expert")} ${n("expert") === 1 ? "expert" : "experts"}`),
        chart.host,
      ]);
    }));
    drawInView(grid);
  }
  const key = svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, svg("line", { x1: 0, x2: 26, y1: 5, y2: 5, stroke: "var(--text)", "stroke-opacity": 0.7, "stroke-width": 1.4, "stroke-dasharray": "4 4" }));
  const solid = svg("svg", { width: 26, height: 10, "aria-hidden": "true" }, svg("line", { x1: 0, x2: 26, y1: 5, y2: 5, stroke: "var(--text)", "stroke-width": 2 }));
  put(host,
    el("div", { class: "controls" }, [
      agents.length > 1 ? segments("Agent", agents.map((a) => [a, clip(a, 24)]), state.agent, (v) => { state.agent = v; draw(); }) : null,
      el("label", {}, [solid, "in the lifetime"]), el("label", {}, [key, "single-task expert"]),
      el("span", { class: "muted" }, `${DATA.measure} over steps of learning the task; RP, SE: relative performance and sample efficiency`),
    ]),
    grid, numbers("Experts", rows),
  );
  draw();
}
