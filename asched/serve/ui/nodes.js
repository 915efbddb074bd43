// A cell per node: the hue is the scarcest resource, the saturation its usage.

const HUES = 6; // of the resources that are scarce on most nodes; the last hue is for all other resources
const FULLEST = 20;
const CORDONED = 1, TAINTED = 2;
let nodes = { generation: -1, names: [], share: [], scarce: [], flags: [], resources: [], count: 0 };
let order = [], shownOnly = "", cursor = 0;
const hueOf = new Map();

function takeNodes(told) {
  const names = told.names || nodes.names;
  const isNew = told.names !== undefined;
  nodes = { ...told, names };
  const counts = new Map();
  nodes.scarce.forEach((resource) => counts.set(resource, (counts.get(resource) || 0) + 1));
  for (const [resource] of [...counts].sort((a, b) => b[1] - a[1])) {
    if (!hueOf.has(nodes.resources[resource])) hueOf.set(nodes.resources[resource], Math.min(hueOf.size + 1, HUES));
  }
  hueOf.set("pods", 0);
  drawLegend(counts);
  drawCells(isNew);
  drawFullest();
}

function cellWords(i) {
  const flags = nodes.flags[i];
  const kept = flags & CORDONED ? ", cordoned" : flags & TAINTED ? ", tainted" : "";
  return `${nodes.names[i]}: ${nodes.resources[nodes.scarce[i]]} ${nodes.share[i]} %${kept}`;
}

function drawLegend(counts) {
  const told = nodes.count > nodes.names.length ? `${number(nodes.names.length)} of ${number(nodes.count)} nodes are shown. ` : `${number(nodes.count)} nodes. `;
  at("nodes-note").textContent = `${told}A stronger colour is a fuller node; a frame marks cordoned and tainted nodes.`;
  const held = document.activeElement && document.activeElement.dataset.resource;
  const buttons = [...counts].sort((a, b) => b[1] - a[1]).map(([resource, count]) => {
    const name = nodes.resources[resource];
    const made = el("button", { type: "button", "aria-pressed": String(shownOnly === name), "data-resource": name },
      el("span", { class: `swatch h${hueOf.get(name)}`, "aria-hidden": "true" }), `${name}: ${number(count)}`);
    if (held === name) queueMicrotask(() => made.focus({ preventScroll: true }));
    return made;
  });
  at("legend").replaceChildren(...buttons);
}

function arrange() {
  order = nodes.names.map((_, i) => i);
  if (at("order").value === "share") order.sort((a, b) => nodes.share[b] - nodes.share[a] || (nodes.names[a] < nodes.names[b] ? -1 : 1));
  else order.sort((a, b) => (nodes.names[a] < nodes.names[b] ? -1 : nodes.names[a] > nodes.names[b] ? 1 : 0));
}

function drawCells(isNew) {
  const grid = at("cells"), size = nodes.names.length;
  if (isNew || order.length !== size) arrange();
  grid.style.setProperty("--cell", size <= 200 ? "24px" : size <= 1500 ? "15px" : size <= 7000 ? "10px" : "7px");
  while (grid.childElementCount > size) grid.lastElementChild.remove();
  if (grid.childElementCount < size) {
    const more = document.createDocumentFragment();
    for (let i = grid.childElementCount; i < size; i += 1) more.append(el("button", { type: "button", tabindex: "-1" }));
    grid.append(more);
  }
  cursor = Math.min(cursor, Math.max(size - 1, 0));
  order.forEach((i, place) => {
    const cell = grid.children[place], name = nodes.resources[nodes.scarce[i]];
    const words = cellWords(i);
    const dim = shownOnly && shownOnly !== name ? " dim" : "";
    const look = `h${hueOf.get(name)}${nodes.flags[i] ? " kept" : ""}${dim}`;
    if (cell.getAttribute("aria-label") !== words) {
      cell.setAttribute("aria-label", words);
      cell.style.setProperty("--full", Math.max(Math.min(nodes.share[i], 100), 0) + "%");
    }
    if (cell.className !== look) cell.className = look;
    const stop = place === cursor ? "0" : "-1";
    if (cell.getAttribute("tabindex") !== stop) cell.setAttribute("tabindex", stop);
  });
}

function drawFullest() {
  const first = nodes.names.map((_, i) => i).sort((a, b) => nodes.share[b] - nodes.share[a]).slice(0, FULLEST);
  redraw(at("fullest").tBodies[0], first.map((i) => el("tr", {},
    el("td", {}, link("node", nodes.names[i])),
    el("td", {}, nodes.resources[nodes.scarce[i]]),
    el("td", { class: "number" }, `${nodes.share[i]} %`),
    el("td", {}, nodes.flags[i] & CORDONED ? "cordoned" : nodes.flags[i] & TAINTED ? "tainted" : ""))));
}

function cellsInARow() {
  const cells = at("cells").children;
  if (!cells.length) return 1;
  const top = cells[0].offsetTop;
  let count = 1;
  while (count < cells.length && cells[count].offsetTop === top) count += 1;
  return count;
}

function moveCursor(to) {
  const cells = at("cells").children;
  if (!cells.length) return;
  cells[cursor].setAttribute("tabindex", "-1");
  cursor = Math.max(0, Math.min(to, cells.length - 1));
  cells[cursor].setAttribute("tabindex", "0");
  cells[cursor].focus();
}

function placeOf(cell) {
  return [...at("cells").children].indexOf(cell);
}

function pointAt(event) {
  if (event.target.parentElement === at("cells")) at("cell-note").textContent = event.target.getAttribute("aria-label");
}

at("cells").addEventListener("mouseover", pointAt);
at("cells").addEventListener("focusin", pointAt);
at("cells").addEventListener("click", (event) => {
  const place = placeOf(event.target);
  if (place < 0) return;
  at("cells").children[cursor].setAttribute("tabindex", "-1");
  cursor = place;
  event.target.setAttribute("tabindex", "0");
  location.hash = `#node/${encodeURIComponent(nodes.names[order[place]])}`;
});
at("cells").addEventListener("keydown", (event) => {
  const steps = { ArrowRight: () => 1, ArrowLeft: () => -1, ArrowDown: cellsInARow, ArrowUp: () => -cellsInARow(), Home: () => -cursor, End: () => order.length };
  if (!steps[event.key] || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  moveCursor(cursor + steps[event.key]());
});
at("order").addEventListener("change", () => { cursor = 0; arrange(); drawCells(false); });
at("legend").addEventListener("click", (event) => {
  const chosen = event.target.closest("button");
  if (!chosen) return;
  shownOnly = shownOnly === chosen.dataset.resource ? "" : chosen.dataset.resource;
  for (const one of at("legend").children) one.setAttribute("aria-pressed", String(one.dataset.resource === shownOnly));
  drawCells(false);
});
