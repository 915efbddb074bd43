// Counts and lists: queues, reasons of waiting pods, gangs, pools, the last decisions.

function drawTiles(told) {
  const latest = (name) => { const all = (series[name] || []).filter((one) => one !== null); return all.length ? all[all.length - 1] : null; };
  const tiles = [
    ["Active", number(told.queues.active)], ["Backoff", number(told.queues.backoff)],
    ["Unschedulable", number(told.queues.unschedulable)], ["Gated", number(told.queues.gated)],
    ["Being bound", number(told.queues.binding)], ["On nodes", number(told.placed)],
    ["Bound per second", number(latest("bound"))], ["99 % within", duration(latest("waitP99"))],
  ];
  at("tiles").replaceChildren(...tiles.map(([words, value]) => el("div", {}, el("dt", {}, words), el("dd", {}, value))));
}

function reasonWords(one) {
  const said = one.reason || "the reason is no longer stored";
  return [one.plugin ? el("b", {}, one.plugin) : "", one.plugin ? ": " : "", said, one.nodes ? el("span", { class: "soft" }, ` (${nodesOf(one.nodes)})`) : ""];
}

function drawWhy(waiting) {
  at("why").hidden = !waiting.groups.length;
  at("why-none").hidden = Boolean(waiting.groups.length);
  redraw(at("why").tBodies[0], waiting.groups.map((group) => {
    const said = group.reasons.map((one) => el("div", {}, ...reasonWords(one)));
    if (group.otherReasons) said.push(el("div", { class: "soft" }, `and ${number(group.otherReasons)} more reasons`));
    const pods = group.examples.slice(0, 3).flatMap((key, i) => [i ? ", " : "", link("pod", key)]);
    return el("tr", {}, el("td", { class: "number" }, number(group.pods)),
      el("td", {}, ...said, el("div", { class: "soft" }, "such as ", ...pods)),
      el("td", { class: "number" }, duration(group.oldestSeconds)));
  }));
  at("why-more").textContent = waiting.otherGroups ? `${number(waiting.otherPods)} more pods wait for ${number(waiting.otherGroups)} other reasons.` : "";
}

function drawGangs(told) {
  at("gangs").hidden = !told.gangs.length;
  redraw(at("gangs").querySelector("tbody"), told.gangs.map((gang) => el("tr", {},
    el("td", {}, link("gang", gang.group)),
    el("td", { class: "number" }, number(gang.unplaced)),
    el("td", { class: "number" }, gang.held ? `${number(gang.placed)} (${number(gang.held)} held)` : number(gang.placed)),
    el("td", { class: "number" }, gang.minCount ? number(gang.minCount) : "–"))));
}

// Pools of the configuration. The gap is known of pools that this replica has taken.
function drawPools(pools) {
  at("pools").hidden = !pools.length;
  redraw(at("pools").querySelector("tbody"), pools.map((pool) => el("tr", {},
    el("td", {}, pool.name || "several"),
    el("td", {}, pool.holder || "–"),
    el("td", { class: "number" }, number(pool.waiting)),
    el("td", { class: "number" }, number(pool.stopped)),
    el("td", { class: "number" }, duration(pool.gapSeconds)))));
}

function drawRecent(lines) {
  redraw(at("recent"), lines.map((line) => el("li", {}, clock(line.at), " ", link("pod", line.pod), ` ${line.what}`,
    line.node ? " to " : "", line.node ? link("node", line.node) : "")));
}
