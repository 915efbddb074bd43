// Line charts of the last half hour, with the newest values as text beside them.

const WIDTH = 600, HEIGHT = 96;
const CHARTS = [
  { title: "Attempts per second", written: number,
    lines: [["bound", "bound", "ca"], ["refused", "no node", "cb dashed"], ["failed", "error", "cc dotted"]] },
  { title: "First attempt to bound", written: duration,
    lines: [["waitP50", "50 % within", "ca"], ["waitP99", "99 % within", "cb dashed"]] },
  { title: "Waiting pods", written: number,
    lines: [["active", "active", "ca"], ["backoff", "backoff", "cb dashed"], ["unschedulable", "unschedulable", "cc dotted"], ["gated", "gated", "cd"]] },
];
const BEATS_MAX = 900;
const series = {};

function takeSeries(told) {
  for (const [name, values] of Object.entries(told)) {
    if (!Array.isArray(values)) continue;
    series[name] = [...(series[name] || []), ...values].slice(-BEATS_MAX);
  }
}

function forgetSeries() {
  for (const name of Object.keys(series)) delete series[name];
}

function lastBeat() {
  return series.seq && series.seq.length ? series.seq[series.seq.length - 1] : 0;
}

function path(xs, values, top) {
  let said = "", isOpen = false;
  values.forEach((value, i) => {
    if (value === null) { isOpen = false; return; }
    const y = HEIGHT - 2 - (value / top) * (HEIGHT - 6);
    said += `${isOpen ? "L" : "M"}${xs[i].toFixed(1)},${y.toFixed(1)}`;
    if (!isOpen) said += `l0.01,0`;
    isOpen = true;
  });
  return said;
}

function roundUp(value) {
  if (value <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

function chart({ title, written, lines }) {
  const times = series.at || [];
  const end = times[times.length - 1] || 0, begin = Math.min(times[0] || 0, end - 60);
  const xs = times.map((time) => ((time - begin) / (end - begin || 1)) * WIDTH);
  const top = roundUp(Math.max(0, ...lines.map(([name]) => (series[name] || []).reduce((most, value) => Math.max(most, value || 0), 0))));
  const said = lines.map(([name, words]) => {
    const values = (series[name] || []).filter((value) => value !== null);
    return `${words} ${written(values.length ? values[values.length - 1] : null)}`;
  });
  const picture = drawn("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${title}, now: ${said.join(", ")}; the scale ends at ${written(top)}` });
  for (const y of [2, HEIGHT / 2, HEIGHT - 2]) picture.append(drawn("line", { x1: 0, x2: WIDTH, y1: y, y2: y, class: "axis" }));
  for (const [name, , look] of lines) picture.append(drawn("path", { d: path(xs, series[name] || [], top), class: `line ${look}` }));
  const keys = lines.map(([, , look], i) => el("span", { class: `key ${look.split(" ")[0]}` }, el("span", {}, said[i])));
  return el("figure", {},
    el("figcaption", {}, el("b", {}, title), ...keys),
    el("div", { class: "scale" }, el("span", {}, written(top))),
    picture,
    el("div", { class: "scale" }, el("span", {}, `${duration(end - begin)} ago`), el("span", {}, "now")));
}

function drawCharts() {
  at("charts").replaceChildren(...CHARTS.map(chart));
}
