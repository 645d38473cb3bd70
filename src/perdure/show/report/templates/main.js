// The page comes to life.
const root = document.documentElement;
if (["light", "dark"].includes(address.get("mode"))) root.dataset.theme = address.get("mode");
document.getElementById("theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
  address.set("mode", root.dataset.theme, "");
});
adoptTitles(document.body);

for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  heads.forEach((head, column) => head.querySelector(".sort").addEventListener("click", () => {
    const now = head.getAttribute("aria-sort");
    const first = head.dataset.first || "ascending";
    const next = now === "none" ? first : now === "ascending" ? "descending" : "ascending";
    heads.forEach((h) => h.setAttribute("aria-sort", h === head ? next : "none"));
    const sign = next === "ascending" ? 1 : -1;
    const key = (row) => row.cells[column].dataset.sort;
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      const [p, q] = [Number(x), Number(y)];
      return sign * (isNaN(p) || isNaN(q) ? x.localeCompare(y) : p - q);
    });
    body.append(...rows);
  }));
}

for (const strip of document.querySelectorAll("[data-step]")) {
  const blocks = [...strip.children];
  let at = -1;
  const go = (k) => {
    if (blocks[at]) blocks[at].classList.remove("active");
    at = k;
    if (!blocks[at]) return tip.hide();
    blocks[at].classList.add("active");
    tip.at(blocks[at], blocks[at].dataset.tip);
  };
  strip.addEventListener("keydown", (e) => {
    const move = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (!move) return;
    go(Math.min(Math.max(at + move, 0), blocks.length - 1));
    e.preventDefault();
  });
  strip.addEventListener("blur", () => go(-1));
}

// Videos play while they are seen, unless the reader wants no motion; a click or a key stops one.
const allVideos = document.querySelector("[data-videos]");
if (allVideos) {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  let running = !still;
  const inSight = new Set();
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      isIntersecting ? inSight.add(target) : inSight.delete(target);
      if (isIntersecting && running && !target.dataset.stopped) target.play().catch(() => {}); else target.pause();
    }
  });
  const say = () => { allVideos.textContent = running ? "Stop all videos" : "Play all videos"; };
  for (const video of document.querySelectorAll(".videos video")) {
    stopsAndStarts(video);
    watcher.observe(video);
  }
  allVideos.addEventListener("click", () => {
    running = !running;
    for (const video of inSight) { delete video.dataset.stopped; running ? video.play() : video.pause(); }
    say();
  });
  say();
}

const CHARTS = { curves: curvesChart, experts: expertsChart, matrix: matrixChart, transfer: transferChart, forgetting: forgettingChart, distributions: distributionsChart, profiles: profilesChart, improvement: improvementChart, benchmarks: benchmarksChart, episodes: episodesChart };
for (const host of document.querySelectorAll("[data-chart]")) {
  whenSeen(host, () => { CHARTS[host.dataset.chart](host); shareTools(host); host.dataset.drawn = ""; });
}
// What an agent kept of a task leads to its episodes.
for (const slot of document.querySelectorAll("[data-episodes]")) {
  const open = () => { const [agent, task] = JSON.parse(slot.dataset.episodes); openEpisodes({ agent, task }); };
  slot.addEventListener("click", open);
  slot.addEventListener("keydown", (e) => { if (e.key === "Enter") open(); });
}
// Links within the page: what is above the target is drawn first, or it would grow and push it away.
document.addEventListener("click", (e) => {
  const link = e.target.closest && e.target.closest("a[href^='#']");
  const target = link && document.getElementById(link.getAttribute("href").slice(1));
  if (target) drawBefore(target);
});
if (address.place) {
  const target = document.getElementById(address.place);
  const there = () => { drawBefore(target); target.scrollIntoView(); };
  // Once more when the first layout is done: a scroll bar that comes makes charts narrower.
  if (target) { there(); requestAnimationFrame(() => requestAnimationFrame(there)); }
}
// A name that is cut down to nothing is not shown; the colour and the legend tell.
function trimStrips() {
  for (const name of document.querySelectorAll(".block bdi")) name.classList.toggle("cut", name.scrollWidth > name.clientWidth && name.clientWidth < 62);
}
trimStrips();
addEventListener("resize", trimStrips);
// Paper shows everything at once, drawn for its own width.
addEventListener("beforeprint", () => {
  root.classList.add("paper");
  drawBefore(null);
  for (const node of document.querySelectorAll(".plot")) drawWhole(node);
});
addEventListener("afterprint", () => root.classList.remove("paper"));
root.dataset.ready = "";
drawRest();
