// Draw when seen, and again when the width changes.
const pending = new Map();
const seen = new IntersectionObserver((entries) => {
  const there = entries.filter((e) => e.isIntersecting && pending.has(e.target)).map((e) => e.target);
  if (there.length) holding(() => there.forEach(drawWhole));
}, { rootMargin: "300px" });
// What is drawn above the place that is looked at grows, and must not push it away. The browser's own
// anchoring gives up where the place itself is drawn too.
function holding(act) {
  const at = scrollY > 0 && document.elementFromPoint(innerWidth / 2, Math.min(96, innerHeight / 2));
  const marks = at ? [at, at.closest("section")].filter(Boolean).map((node) => [node, node.getBoundingClientRect().top]) : [];
  act();
  const [node, top] = marks.find(([mark]) => mark.isConnected) || [];
  const moved = node ? node.getBoundingClientRect().top - top : 0;
  if (Math.abs(moved) > 0.5) scrollBy({ top: moved, behavior: "instant" });
}
function drawNow(node) {
  const draw = pending.get(node);
  if (!draw) return;
  pending.delete(node);
  seen.unobserve(node);
  draw();
}
function whenSeen(node, draw) { pending.set(node, draw); seen.observe(node); }
const sizes = new ResizeObserver((entries) => {
  for (const { target, contentRect } of entries) {
    if (target.redraw && Math.abs(contentRect.width - (target.drawnAt || 0)) > 1) { target.drawnAt = contentRect.width; target.redraw(contentRect.width); }
  }
});
// After a change of what is shown: what is in view is drawn at once, so that nothing flickers.
function drawInView(root) {
  for (const node of root.querySelectorAll(".plot")) {
    const box = node.getBoundingClientRect();
    if (!pending.has(node) || box.top > innerHeight || box.bottom < 0) continue;
    drawNow(node);
    node.drawnAt = box.width;
    node.redraw(box.width);
  }
}
function plot(draw, label) {
  const host = el("div", { class: "plot" });
  host.redraw = (width) => draw(host, Math.max(width, 120));
  whenSeen(host, () => sizes.observe(host));
  if (label) host.dataset.label = label;
  return host;
}
// What lies before a place is drawn at once, so that the place stays where a link jumps to.
function drawBefore(target) {
  for (let round = 0; round < 3; round++) {
    for (const node of [...pending.keys()]) {
      if (!target || node.compareDocumentPosition(target) & Node.DOCUMENT_POSITION_FOLLOWING) drawWhole(node);
    }
  }
}
function drawWhole(node) {
  drawNow(node);
  if (!node.redraw) return;
  const width = node.getBoundingClientRect().width;
  if (width) { node.drawnAt = width; node.redraw(width); }
}
