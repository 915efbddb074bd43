// Elements and texts. Text from the cluster (names, messages) becomes text nodes only.

const at = (id) => document.getElementById(id);

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

function drawn(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const whole = new Intl.NumberFormat("en");

function number(value) {
  if (value === null || value === undefined) return "–";
  return whole.format(value >= 100 || Number.isInteger(value) ? Math.round(value) : Number(value.toPrecision(2)));
}

function nodesOf(count) {
  return `${number(count)} ${count === 1 ? "node" : "nodes"}`;
}

function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 0.001) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${Number((seconds * 1000).toPrecision(2))} ms`;
  if (seconds < 90) return `${Number(seconds.toPrecision(2))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} d`;
}

function clock(seconds) {
  return el("time", { datetime: new Date(seconds * 1000).toISOString() }, new Date(seconds * 1000).toLocaleTimeString("en-GB"));
}

// A place in the page: #pod/NAMESPACE/NAME, #node/NAME, #gang/NAMESPACE/NAME.
function link(kind, key) {
  const [, namespace, name] = key.match(/^(?:([^/]*)\/)?(.*)$/s);
  const parts = namespace === undefined ? [name] : [namespace, name];
  return el("a", { href: `#${kind}/${parts.map(encodeURIComponent).join("/")}` }, key);
}

function table(heads, rows) {
  const cells = heads.map(([text, isNumber]) => el("th", { scope: "col", class: isNumber ? "number" : null }, text));
  const lines = rows.map((row) => el("tr", {}, ...row.map((cell, i) => el("td", { class: heads[i][1] ? "number" : null }, cell))));
  return el("div", { class: "scrolled" }, el("table", {}, el("thead", {}, el("tr", {}, ...cells)), el("tbody", {}, ...lines)));
}

// A table that is drawn every other second must keep the keyboard focus.
function redraw(parent, children) {
  const held = document.activeElement;
  const href = held && parent.contains(held) ? held.getAttribute("href") : null;
  parent.replaceChildren(...children);
  if (href === null) return;
  const same = [...parent.querySelectorAll("a")].find((one) => one.getAttribute("href") === href);
  if (same) same.focus({ preventScroll: true });
}
