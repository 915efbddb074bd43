// Details of a pod, node or gang, selected by the fragment of the address, so that "back" works.

const PATHS = { pod: "pods", node: "nodes", gang: "groups" };
let opener = null;

function wantedDetails() {
  const [kind, ...parts] = location.hash.slice(1).split("/");
  if (!PATHS[kind] || !parts.length) return null;
  try {
    return { kind, parts: parts.map(decodeURIComponent) };
  } catch {
    return null;
  }
}

async function showDetails(query = "?changes=no", takesFocus = true) {
  const wanted = wantedDetails();
  at("details").hidden = !wanted;
  at("frame").classList.toggle("open", Boolean(wanted));
  if (!wanted) return;
  const key = wanted.parts.join("/");
  const hash = location.hash;
  at("details-title").textContent = `${wanted.kind} ${key}`;
  const path = `${PATHS[wanted.kind]}/${wanted.parts.map(encodeURIComponent).join("/")}`;
  let body;
  try {
    body = { pod: podDetails, node: nodeDetails, gang: gangDetails }[wanted.kind](await asked(path + (wanted.kind === "pod" ? query : "")));
  } catch (error) {
    body = [el("p", { class: "warn" }, error.status === 404 ? `The scheduler does not know this ${wanted.kind}.` : error.message)];
  }
  if (location.hash !== hash) return; // another object was selected meanwhile
  at("details-body").replaceChildren(...body);
  if (takesFocus) at("details-title").focus();
}

function podDetails(told) {
  const where = told.node ? [" on ", link("node", told.node)] : [];
  const group = told.group ? [el("p", {}, "gang ", link("gang", told.group))] : [];
  const facts = [
    "attempts" in told ? `${number(told.attempts)} attempt${told.attempts === 1 ? "" : "s"}` : "",
    told.gatedBy ? `gated by ${told.gatedBy}` : "", told.schedulerName ? `profile ${told.schedulerName}` : "",
    "priority" in told ? `priority ${told.priority}` : "", told.wokenBy ? `last requeued by ${told.wokenBy}` : "",
    told.alike > 1 ? `${number(told.alike)} equal pods wait for the same reason` : "",
  ].filter(Boolean);
  return [el("p", {}, el("b", {}, told.place), ...where), ...group, el("p", { class: "soft" }, facts.join(" · ")),
    ...(told.now ? nowWords(told.now) : []), ...(told.gang ? gangWords(told.gang) : []), ...changesOf(told), ...historyOf(told)];
}

function gangWords(gang) {
  const needed = `Its gang still needs room for ${number(gang.needed)} pods at once`;
  if (!("takes" in gang)) return [el("p", {}, `${needed}.`)];
  const next = (gang.reasons || []).map((one) => `${one.plugin || "PreFilter"}: ${one.reason} (${number(one.nodes)})`).join("; ");
  return [el("p", {}, `${needed}; ${number(gang.takes)} find a node.${gang.takes && next ? ` The next one: ${next}` : ""}`)];
}

function nowWords(now) {
  if (now.error) return [el("h3", {}, "Now"), el("p", {}, `The nodes could not be evaluated: ${now.error}`)];
  if (now.preFilter) return [el("h3", {}, "Now"), el("p", {}, `${now.plugin} excludes all ${number(now.nodes)} nodes: ${now.preFilter}`)];
  if (!now.nodes) return [el("h3", {}, "Now"), el("p", {}, "The cluster has no nodes.")];
  const steps = now.funnel.filter((step) => step.of !== step.left).map((step) => [step.plugin, number(step.of - step.left), number(step.left)]);
  const said = [el("h3", {}, `Now: ${number(now.feasible)} of ${number(now.nodes)} nodes fit`)];
  if (steps.length) said.push(table([["Plugin"], ["rejects", true], ["leaves", true]], steps));
  if (!now.feasible && now.nearestMisses.length) {
    said.push(el("h3", {}, "Nearest misses"), el("ul", { class: "plain" }, ...now.nearestMisses.map((miss) => el("li", {}, link("node", miss.node), ": ", missWords(miss)))));
  }
  return said;
}

function missWords(miss) {
  const missing = Object.entries(miss.missing || {}).map(([name, one]) => `${name}: ${one.free} free, ${one.asked} requested`);
  const exact = [...missing, ...(miss.taints || [])].join("; ");
  return miss.objections.map((one) => `${one.plugin}: ${one.reason}`).join("; ") + (exact ? ` (${exact})` : "");
}

function changesOf(told) {
  if (!told.now || told.now.feasible) return [];
  if (!told.changes) {
    const ask = el("button", { type: "button" }, "What would make it fit?");
    ask.addEventListener("click", () => { ask.disabled = true; showDetails("", true); });
    return [el("p", {}, ask)];
  }
  if (!told.changes.length) return [el("h3", {}, "What would make it fit"), el("p", {}, "No single change of a known kind.")];
  return [el("h3", {}, "Any one of these changes makes it fit"), el("ul", { class: "plain" }, ...told.changes.map((one) =>
    el("li", {}, `${one.text} `, el("span", { class: "soft" }, one.nodes === 1 ? `(on ${one.node})` : `(on ${number(one.nodes)} nodes)`))))];
}

function historyOf(told) {
  if (!told.story.length) return [];
  const lines = [...told.story].reverse().slice(0, 100).map((line) => {
    const said = el("li", {}, clock(line.at), ` #${line.attempt} ${line.what}`);
    if (line.node) said.append(": ", link("node", line.node), "feasible" in line ? `, one of ${number(line.feasible)} feasible nodes` : "");
    else if (typeof line.details === "string") said.append(`: ${line.details}`);
    if (line.reasons) said.append(el("ul", {}, ...line.reasons.map((one) => el("li", {}, ...reasonWords(one)))));
    if (line.victims && line.victims.length) said.append(` evicting: ${line.victims.map((one) => `${one.pod} (${one.priority})`).join(", ")}`);
    if (line.scores) said.append(scoresOf(line));
    return said;
  });
  return [el("h3", {}, "History, newest first"), el("ol", { class: "plain" }, ...lines)];
}

function scoresOf(line) {
  const rows = (scores) => scores.map((one) => [one.plugin, number(one.raw), number(one.normalized), number(one.weighted)]);
  const heads = [["Plugin"], ["raw", true], ["normalized", true], ["weighted", true]];
  const others = (line.best || []).filter((one) => one.node !== line.node).map((one) =>
    el("p", {}, link("node", one.node), ` had ${number(one.score)} at attempt #${line.bestAsOf}`));
  return el("details", {}, el("summary", {}, `score ${number(line.score)}`), table(heads, rows(line.scores)), ...others);
}

function nodeDetails(told) {
  const said = [];
  if (told.cordoned) said.push(el("p", { class: "warn" }, "cordoned"));
  for (const taint of told.taints) said.push(el("p", { class: "soft" }, `taint ${taint}`));
  for (const one of told.resources) {
    const full = el("div", {});
    full.style.setProperty("--full", `${Math.min(one.share, 100)}%`);
    said.push(el("p", { class: "note" }, el("b", {}, one.resource), ` ${one.held} of ${one.offered} (${one.share} %)`), el("div", { class: "bar", "aria-hidden": "true" }, full));
  }
  said.push(el("h3", {}, `${number(told.podCount)} pods`), el("ul", { class: "plain" }, ...told.pods.map((one) =>
    el("li", {}, link("pod", one.pod), one.assumed ? el("span", { class: "soft" }, " being bound") : ""))));
  if (told.podCount > told.pods.length) said.push(el("p", { class: "note" }, `${number(told.podCount - told.pods.length)} more`));
  return said;
}

function gangDetails(told) {
  const total = told.placed + told.unplaced;
  const needs = told.minCount ? `, needs ${number(told.minCount)} at once` : "";
  const rows = told.pods.map((one) => [link("pod", one.pod), one.place, one.node ? link("node", one.node) : ""]);
  return [el("p", {}, `${number(told.placed)} of ${number(total)} pods are placed${needs}${told.held ? `; ${number(told.held)} wait for the rest` : ""}.`),
    table([["Pod"], ["Place"], ["Node"]], rows),
    total > rows.length ? el("p", { class: "note" }, `${number(total - rows.length)} more`) : ""].filter(Boolean);
}
