// The page comes to life.
const root = document.documentElement;
document.getElementById("theme").addEventListener("click", () => {
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
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

const CHARTS = { curves: curvesChart, experts: expertsChart, matrix: matrixChart, transfer: transferChart, forgetting: forgettingChart, distributions: distributionsChart, profiles: profilesChart, improvement: improvementChart, natives: nativesChart };
for (const host of document.querySelectorAll("[data-chart]")) {
  whenSeen(host, () => { CHARTS[host.dataset.chart](host); host.dataset.drawn = ""; });
}
// Paper shows everything at once.
addEventListener("beforeprint", () => {
  for (let round = 0; round < 3; round++) for (const node of [...pending.keys()]) drawNow(node);
  for (const node of document.querySelectorAll(".plot")) if (node.redraw && !node.drawnAt) node.redraw(node.clientWidth);
});
root.dataset.ready = "";
