// What is shown, in the address: a link opens the page as it was seen. The place comes first, as in
// #curves?rows=tasks&hide=push.
const address = {
  place: location.hash.slice(1).split("?")[0],
  chosen: new URLSearchParams(location.hash.split("?")[1] || ""),
  get(key, fallback) { return this.chosen.get(key) ?? fallback; },
  set(key, value, fallback) {
    if (String(value) === String(fallback) || value === "") this.chosen.delete(key); else this.chosen.set(key, value);
    const said = this.chosen.toString();
    history.replaceState(null, "", `#${this.place}${said ? `?${said}` : ""}`);
  },
};
addEventListener("hashchange", () => {
  const place = location.hash.slice(1).split("?")[0];
  if (place && !location.hash.includes("?") && address.chosen.toString()) { address.place = place; address.set("", "", ""); } else address.place = place;
});

// A section's charts as one picture: each with the styles that the page gives it.
const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-opacity", "stroke-dasharray", "stroke-linecap", "opacity", "font-size", "font-weight", "font-family", "text-anchor", "visibility", "paint-order"];
function frozen(picture) {
  const copy = picture.cloneNode(true);
  const [from, to] = [picture, copy].map((node) => [node, ...node.querySelectorAll("*")]);
  from.forEach((node, i) => {
    const style = getComputedStyle(node);
    to[i].setAttribute("style", STYLES.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
    to[i].removeAttribute("class");
  });
  copy.removeAttribute("tabindex");
  return copy;
}
function chartPicture(host, title) {
  const surface = getComputedStyle(host.closest(".card") || document.body), text = getComputedStyle(document.body).color;
  const label = (words, y, size, weight) => svg("text", { x: 16, y, style: `font:${weight} ${size}px system-ui,sans-serif;fill:${text}` }, words);
  const parts = [label(title, 26, 16, 650)];
  let y = 40, width = 320;
  for (const picture of host.querySelectorAll(".plot > svg")) {
    const box = picture.getBoundingClientRect();
    if (!box.width) continue;
    const head = picture.closest(".facet, .panel")?.querySelector("header");
    if (head && head.innerText.trim()) { parts.push(label(head.innerText.replace(/\s+/g, " ").trim(), y + 12, 12.5, 600)); y += 18; }
    const copy = frozen(picture);
    for (const [key, value] of Object.entries({ x: 16, y, width: box.width, height: box.height })) copy.setAttribute(key, value);
    parts.push(copy);
    y += box.height + 10;
    width = Math.max(width, box.width + 32);
  }
  const out = svg("svg", { xmlns: SVG, width, height: y + 8, viewBox: `0 0 ${width} ${y + 8}` }, [svg("rect", { width: "100%", height: "100%", fill: surface.backgroundColor }), parts]);
  return { text: new XMLSerializer().serializeToString(out), width, height: y + 8 };
}
function download(blob, name) {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
function savePicture(host, title, kind) {
  for (const node of host.querySelectorAll(".plot")) drawWhole(node);
  const picture = chartPicture(host, title), name = `${title.toLowerCase().replace(/[^a-z0-9]+/g, "-")}.${kind}`;
  const blob = new Blob([picture.text], { type: "image/svg+xml" });
  if (kind === "svg") return download(blob, name);
  const image = new Image(), url = URL.createObjectURL(blob);
  image.onload = () => {
    const canvas = el("canvas", { width: picture.width * 2, height: picture.height * 2 });
    canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
    URL.revokeObjectURL(url);
    canvas.toBlob((made) => download(made, name));
  };
  image.src = url;
}
function shareTools(host) {
  const top = host.closest("section")?.querySelector(".top");
  if (!top || top.querySelector(".saves") || !host.querySelector(".plot")) return;
  const title = top.querySelector("h2").textContent;
  top.append(el("span", { class: "tools saves" }, ["svg", "png"].map((kind) => el("button", { type: "button", "aria-label": `Save ${title} as ${kind.toUpperCase()}`, on: { click: () => savePicture(host, title, kind) } }, kind.toUpperCase()))));
}
