// Single episodes: chosen by agent, task, lifetime, evaluation and outcome, with their videos.
const EPISODES = { rows: null, index: null, show: null };
function episodeRows() {
  if (!EPISODES.rows) {
    const lives = new Map(DATA.played.map((l) => [l.lifetime, l]));
    EPISODES.rows = records(DATA.episodes).map((r) => ({ ...r, agent: lives.get(r.lifetime).agent, seed: lives.get(r.lifetime).seed }));
    EPISODES.index = groupBy(EPISODES.rows, (r) => `${r.block} ${r.task}`);
  }
  return EPISODES.rows;
}
// How many episodes a place has: what a click on it would show.
function episodesAt(where) {
  episodeRows();
  const there = EPISODES.index.get(`${where.block} ${where.task}`) || [];
  return there.filter((r) => !where.agent || r.agent === where.agent).length;
}
const episodesHint = (where) => {
  const count = episodesAt(where);
  return count ? `click or Enter: ${count === 1 ? "its episode" : `its ${count} episodes`}` : "";
};
function openEpisodes(where) {
  const section = document.getElementById("episodes");
  if (!section || (where.block !== undefined && !episodesAt(where))) return;
  drawBefore(section);
  drawWhole(section.querySelector("[data-chart]"));
  history.pushState(null, "", location.href);
  address.place = "episodes";
  EPISODES.show(where);
  tip.hide();
  section.scrollIntoView();
  section.querySelector("h2").focus({ preventScroll: true });
}
function videoAddress(key) {
  const shown = [...document.querySelectorAll("video[data-video]")].find((v) => v.dataset.video === key);
  if (shown) return shown.src;
  const more = document.getElementById("more-videos");
  return (more && JSON.parse(more.textContent)[key]) || null;
}

// A video without controls, which would hide a part of it: a click or a key stops and starts it.
function stopsAndStarts(video) {
  const toggle = () => { if (video.paused) { delete video.dataset.stopped; video.play(); } else { video.dataset.stopped = "1"; video.pause(); } };
  video.addEventListener("click", toggle);
  video.addEventListener("keydown", (e) => { if (e.key === " " || e.key === "Enter") { toggle(); e.preventDefault(); } });
}

function episodesChart(host) {
  const rows = episodeRows(), wins = DATA.measure === "success", PAGE = 40;
  const any = ["", "any"], returns = DATA.measure !== "return" && rows.some((r) => r.return !== null);
  const known = (name, values) => [any, ...values].some(([v]) => String(v) === name) ? name : "";
  const agents = DATA.agents.map((a) => a.name).filter((a) => rows.some((r) => r.agent === a)).map((a) => [a, a]);
  const tasks = DATA.tasks.map((t) => t.name).filter((t) => rows.some((r) => r.task === t)).map((t) => [t, short(t)]);
  const evaluations = [...groupBy(rows, (r) => r.block)].sort(([a], [b]) => a - b).map(([block, own]) => {
    const after = [...new Set(own.map((r) => r.after))];
    return [block, `block ${block}${after.length === 1 ? `, ${after[0]}` : ""}`];
  });
  const outcomes = wins ? [["won", "success"], ["lost", "no success"]] : [["high", `the best tenth by ${DATA.measure}`], ["low", `the worst tenth by ${DATA.measure}`]];
  const videos = rows.some((r) => r.video);
  if (videos) outcomes.push(["video", "with a video"]);
  const orders = [["life", "in order of life"], ["best", "best first"], ["worst", "worst first"]];
  const state = { agent: known(address.get("agent", ""), agents), task: known(address.get("task", ""), tasks), life: address.get("life", ""), block: known(address.get("block", ""), evaluations), outcome: known(address.get("outcome", ""), outcomes), order: "life", shown: PAGE, video: "" };
  const controls = el("div", { class: "controls" }), summary = el("p", { class: "found", role: "status" });
  const stage = el("div", { class: "stage", hidden: true }), list = el("div", {}), more = el("p", { class: "tools more" });

  const place = (r) => `${r.lifetime} ${r.block} ${r.task}`;
  function chosen() {
    let found = rows.filter((r) => (!state.agent || r.agent === state.agent) && (!state.task || r.task === state.task) && (!state.life || r.lifetime === state.life) && (state.block === "" || String(r.block) === String(state.block)));
    const values = found.map((r) => r.value).filter((v) => v !== null).sort((a, b) => a - b);
    const tenth = Math.max(Math.ceil(values.length / 10), 1);
    const keep = {
      won: (r) => r.value === 1, lost: (r) => r.value === 0, video: (r) => r.video,
      high: (r) => r.value !== null && r.value >= values[values.length - tenth], low: (r) => r.value !== null && r.value <= values[tenth - 1],
    }[state.outcome];
    if (keep) found = found.filter(keep);
    const sign = { best: -1, worst: 1 }[state.order];
    if (sign) found = [...found].sort((a, b) => sign * ((a.value ?? -Infinity * sign) - (b.value ?? -Infinity * sign)) || sign * ((a.return ?? 0) - (b.return ?? 0)));
    return found;
  }
  const outcome = (r) => (r.value === null ? "–" : !wins ? number(r.value) : el("span", { class: r.value === 1 ? "won" : "missed" }, r.value === 1 ? "success" : r.value === 0 ? "no success" : number(r.value)));
  const words = (r) => `${r.agent}, seed ${r.seed ?? "–"}: ${short(r.task)} ${r.after}, episode ${r.episode}`;
  function play(r) {
    state.video = r.video;
    const source = videoAddress(r.video);
    const caption = el("figcaption", {}, [el("strong", {}, words(r)), ": ", outcome(r), el("br"), el("span", { class: "muted" }, `${r.steps.toLocaleString("en-US")} steps${r.return === null ? "" : `, return ${number(r.return)}`}, block ${r.block}`)]);
    const video = source ? el("video", { src: source, loop: true, muted: true, playsinline: true, tabindex: 0, "aria-label": words(r) })
      : el("p", { class: "muted" }, ["Not in this file, which holds some videos only: ", el("bdi", { class: "mono" }, r.video.replace(/\/([^/]*)$/, "/_video/$1"))]);
    if (source) { stopsAndStarts(video); caption.append(el("br"), el("span", { class: "muted" }, "A click on the video stops and starts it.")); }
    put(stage, el("figure", {}, [video, caption]));
    stage.hidden = false;
    if (source && !matchMedia("(prefers-reduced-motion: reduce)").matches) video.play().catch(() => {});
    for (const row of list.querySelectorAll("tr[data-video]")) row.classList.toggle("playing", row.dataset.video === r.video);
  }
  function line(r) {
    const cells = [
      ["Agent", [badge(r.agent), bdi(r.agent, r.agent)]], ["Seed", String(r.seed ?? r.lifetime)], ["Task", [swatch(taskColour(r.task)), " ", bdi(short(r.task), r.task)]],
      ["When", r.after], ["Episode", String(r.episode)], [wins ? "Outcome" : DATA.measure, outcome(r)],
      returns ? ["Return", number(r.return)] : null, ["Steps", r.steps.toLocaleString("en-US")],
      videos ? ["Video", r.video ? el("button", { type: "button", class: "play", "aria-label": `Play ${words(r)}`, on: { click: () => { play(r); stage.scrollIntoView({ block: "nearest" }); } } }, "▶") : ""] : null,
    ].filter(Boolean);
    return el("tr", { "data-video": r.video || null, class: r.video && r.video === state.video ? "playing" : null }, cells.map(([name, value]) => el("td", { "data-label": name, class: /Seed|Episode|Return|Steps/.test(name) ? "number" : null }, value)));
  }
  function draw() {
    const found = chosen(), shown = found.slice(0, state.shown), defined = found.filter((r) => r.value !== null);
    const mean = defined.reduce((sum, r) => sum + r.value, 0) / defined.length;
    const lives = new Set(found.map((r) => r.lifetime)).size, recorded = found.filter((r) => r.video).length;
    const count = `${found.length.toLocaleString("en-US")} episode${found.length === 1 ? "" : "s"} of ${lives} lifetime${lives === 1 ? "" : "s"}`;
    const good = !defined.length ? "" : wins ? `: ${defined.filter((r) => r.value === 1).length.toLocaleString("en-US")} succeeded (${mean.toFixed(2)})` : `: mean ${DATA.measure} ${number(mean)}`;
    summary.textContent = found.length ? `${count}${good}${recorded ? `; ${recorded} with a video` : ""}.` : "No episode is like that.";
    const heads = shown.length ? [...line(shown[0]).cells].map((c) => el("th", { scope: "col", class: c.className || null }, c.dataset.label)) : [];
    put(list, shown.length ? el("table", { class: "plain episodes" }, [el("thead", {}, el("tr", {}, heads)), el("tbody", {}, shown.map(line))]) : null);
    put(more, found.length > shown.length ? el("button", { type: "button", on: { click: () => { state.shown += 4 * PAGE; draw(); } } }, `Show more (${(found.length - shown.length).toLocaleString("en-US")} left)`) : null);
    const first = found.find((r) => r.video && videoAddress(r.video));
    if (!found.some((r) => r.video && r.video === state.video)) { if (first && state.agent + state.task + state.life + state.block !== "") play(first); else { stage.hidden = true; put(stage); state.video = ""; } }
  }
  function build() {
    const lives = DATA.played.filter((l) => !state.agent || l.agent === state.agent);
    const of = new Map([...groupBy(lives, (l) => l.seed)].map(([seed, own]) => [seed, own.length]));
    if (state.life && !lives.some((l) => l.lifetime === state.life)) state.life = "";
    const lifetimes = lives.map((l) => [l.lifetime, (state.agent && l.seed !== null && of.get(l.seed) === 1 ? `seed ${l.seed}` : l.lifetime) + (l.finished ? "" : ", not finished")]);
    const pick = (name, label, options) => choice(label, [any, ...options], state[name], (v) => { state[name] = v; state.shown = PAGE; address.set(name, v, ""); if (name === "agent") build(); draw(); });
    put(controls, pick("agent", "Agent", agents), pick("task", "Task", tasks), pick("life", "Lifetime", lifetimes), pick("block", "Evaluation", evaluations), pick("outcome", "Outcome", outcomes),
      choice("Order", orders, state.order, (v) => { state.order = v; draw(); }));
  }
  EPISODES.show = (where) => {
    for (const name of ["agent", "task", "life", "block"]) { state[name] = where[name] ?? ""; address.set(name, state[name], ""); }
    state.outcome = ""; address.set("outcome", "", "");
    state.shown = PAGE;
    build(); draw();
  };
  const left = DATA.lifetimes - DATA.played.length;
  put(host, controls, summary, stage, list, more, left > 0 ? el("p", { class: "muted small" }, `Of ${DATA.played.length} of ${DATA.lifetimes} lifetimes, the first of each agent; the others are in the run.`) : null);
  build(); draw();
}
