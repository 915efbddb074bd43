// The page: polls every two seconds while it is visible, and draws the answers.

const EVERY_MS = 2000;
let isPaused = false, generation = -1, begun = null;

async function asked(path) {
  let answer;
  try {
    answer = await fetch(`../debug/asched/${path}`, { credentials: "same-origin", cache: "no-store" });
  } catch {
    throw new Error("the scheduler does not answer");
  }
  if (!answer.ok) {
    const why = { 401: "the credentials are not accepted", 403: "access denied: get on the nonResourceURL /debug/asched/* is needed", 404: "not found" }[answer.status];
    const told = answer.status === 502 ? (await answer.text()).slice(0, 300) : "";
    throw Object.assign(new Error(why || told || `the scheduler answered ${answer.status}`), { status: answer.status });
  }
  return answer.json();
}

async function look() {
  const told = await asked(`view?names=${generation}&since=${lastBeat()}`);
  if (begun !== null && told.startedAt !== begun) { // another process answers: start again
    begun = null; generation = -1; forgetSeries();
    return look();
  }
  begun = told.startedAt;
  generation = told.nodes.generation;
  takeSeries(told.series);
  drawTiles(told);
  drawCharts();
  drawWhy(told.waiting);
  drawGangs(told.gangs);
  drawPools(told.pools);
  drawRecent(told.recent);
  takeNodes(told.nodes);
  at("frame").hidden = false;
  const role = !told.synced ? "is reading the cluster" : told.leads ? "leads" : "is standby: another replica leads";
  say(`${told.profiles.join(", ")} ${role} · ${number(told.nodes.count)} nodes, ${number(told.pods)} pods · asched ${told.version}`, false);
}

function say(words, isBad) {
  const state = at("state");
  if (state.textContent !== words) state.textContent = words;
  state.className = isBad ? "bad" : "";
}

async function keepLooking() {
  if (!isPaused && !document.hidden) {
    try {
      await look();
    } catch (error) {
      say(`${error.message}; the data shown may be outdated. Retrying.`, true);
    }
  }
  setTimeout(keepLooking, EVERY_MS);
}

at("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  at("pause").setAttribute("aria-pressed", String(isPaused));
});
at("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const wanted = at("wanted").value.trim();
  if (!wanted) return;
  const [namespace, name] = wanted.includes("/") ? wanted.split("/", 2) : ["default", wanted];
  location.hash = `#pod/${encodeURIComponent(namespace)}/${encodeURIComponent(name)}`;
});
at("close").addEventListener("click", () => {
  history.pushState(null, "", location.pathname + location.search);
  showDetails();
  const back = opener && opener.isConnected ? opener : at("main");
  back.focus();
});
document.addEventListener("click", (event) => { if (event.target.closest("#main a, #cells button")) opener = event.target; });
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && !at("details").hidden) at("close").click(); });
window.addEventListener("hashchange", () => showDetails());
showDetails(undefined, false);
keepLooking();
