// Draw when seen, and again when the width changes.
const pending = new Map();
const seen = new IntersectionObserver((entries) => {
  for (const entry of entries) if (entry.isIntersecting) drawNow(entry.target);
}, { rootMargin: "300px" });
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
// What nobody has seen yet is drawn while nothing else is to be done: then nothing grows under who scrolls past
// it, and a jump ends where it was to end. Of very large pages, as much as takes some seconds.
const IDLE = 4000;
function drawRest(spent = 0) {
  const wait = window.requestIdleCallback || ((act) => setTimeout(() => act({ timeRemaining: () => 12 }), 30));
  wait((deadline) => {
    const began = performance.now();
    for (const node of [...pending.keys()]) {
      drawWhole(node);
      if (deadline.timeRemaining() < 4) break;
    }
    const now = spent + performance.now() - began;
    if (pending.size && now < IDLE) drawRest(now);
  });
}
