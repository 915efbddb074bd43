"""The page /ui/ in a real browser: five thousand nodes, hostile names, keyboard, both schemes.

With ASCHED_SCREENSHOTS=FOLDER pictures are left there, to be looked at.
"""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.unit.serve.browser import Tab, a_tab
from tests.unit.serve.views import HOSTILE, a_view
from tests.unit.serve.world import Port, a_port

SIZES = [(390, False), (390, True), (1400, False), (1400, True)]

#: Relative luminance and contrast as WCAG 2.2 defines them, for every element with text of its own.
CONTRASTS = """
(() => {
  const channel = (c) => (c /= 255, c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const [r, g, b, a = 1] = parse(getComputedStyle(at).backgroundColor);
      if (a > 0) return [r, g, b];
    }
    return [255, 255, 255];
  };
  const low = [];
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !one.checkVisibility() || one.closest("script, style, noscript, .skip")) continue;
    const [a, b] = [luminance(parse(getComputedStyle(one).color)), luminance(behind(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) low.push(`${one.tagName} ${one.textContent.slice(0, 30)} ${ratio.toFixed(2)}`);
  }
  return low;
})()
"""


A_POD = {
    "pod": "ml/train-0",
    "place": "unschedulable",
    "node": "",
    "schedulerName": "asched",
    "priority": 5,
    "attempts": 3,
    "alike": 3300,
    "group": "ml/crew",
    "wokenBy": "NodeAdd",
    "story": [
        {
            "at": 1.7e9,
            "attempt": 9,
            "what": "no node",
            "reasons": [{"plugin": "NodeResourcesFit", "reason": HOSTILE, "nodes": 4, "named": []}],
        }
    ],
    "now": {
        "nodes": 5000,
        "lookedAt": 5000,
        "feasible": 0,
        "funnel": [{"plugin": "NodeResourcesFit", "refuses": 5000, "left": 0, "of": 5000}],
        "nearestMisses": [
            {
                "node": "ip-10-0-0-0.internal",
                "objections": [{"plugin": "NodeResourcesFit", "reason": "Insufficient cpu"}],
                "missing": {"cpu": {"asked": "4", "free": "1"}},
                "taints": [],
            }
        ],
    },
}
CHANGES = [{"kind": "request", "text": "ask for 3 cpu less", "node": "n", "nodes": 2}]
A_NODE = {
    "node": "ip-10-0-0-0.internal",
    "cordoned": True,
    "taints": ["a=b:NoSchedule"],
    "resources": [{"resource": "cpu", "offered": "4", "held": "3", "share": 75}],
    "podCount": 700,
    "pods": [{"pod": "shop/web-1", "priority": 0, "assumed": True}],
}
A_GANG = {
    "group": "ml/crew",
    "unplaced": 3,
    "placed": 1,
    "held": 1,
    "minCount": 4,
    "pods": [{"pod": "ml/train-0", "place": "unschedulable", "node": ""}],
}


@asynccontextmanager
async def a_page(told: dict[str, Any]) -> AsyncIterator[tuple[Tab, Port, str]]:
    async with a_port(allowed=("/*",)) as port, a_tab() as tab:
        shown = port.inspector

        async def view(names_of: int, since: int) -> dict[str, Any]:
            port.inspector.asked.append((names_of, since))
            return told

        async def explain(namespace: str, name: str, _: str, *, tries_changes: bool) -> Any:
            if (namespace, name) not in (("ml", "train-0"), ("ml", HOSTILE)):
                return None
            return {**A_POD, **({"changes": CHANGES} if tries_changes else {})}

        shown.asked, shown.view, shown.explain = [], view, explain
        shown.node = {A_NODE["node"]: A_NODE}.get
        shown.gang = {"ml/crew": A_GANG}.get
        url = f"https://127.0.0.1:{port.server.port}/ui/"
        await tab.look(width=1400)
        await tab.open(url)
        if told["nodes"]["count"]:
            await tab.until("document.querySelectorAll('#cells button').length > 0")
        yield tab, port, url


async def picture(tab: Tab, name: str, *, whole: bool = False) -> None:
    folder = os.environ.get("ASCHED_SCREENSHOTS")
    if folder:
        await tab.picture(Path(folder) / f"{name}.png", whole=whole)


async def text(tab: Tab, selector: str) -> str:
    return str(await tab.eval(f"document.querySelector('{selector}').innerText"))


async def test_five_thousand_nodes_are_readable_in_both_schemes_wide_and_narrow() -> None:
    async with a_page(a_view(5000)) as (tab, port, url):
        assert await tab.eval("document.querySelectorAll('#cells button').length") == 5000
        backs = set()
        for width, dark in SIZES:
            await tab.look(width=width, dark=dark)
            await tab.eval("document.body.offsetWidth")
            assert await tab.eval("document.documentElement.scrollWidth") <= width
            cells = "[...document.querySelectorAll('#cells button')]"
            assert await tab.eval(f"Math.min(...{cells}.map((c) => c.offsetWidth))") >= 7
            assert await tab.eval(CONTRASTS) == []
            backs.add(await tab.eval("getComputedStyle(document.body).backgroundColor"))
            await picture(tab, f"nodes-{width}-{'dark' if dark else 'light'}", whole=True)
        assert len(backs) == 2
        assert {one.split("?")[0] for one in tab.requests} == {
            url,
            url.replace("/ui/", "/debug/asched/view"),
        }
        assert tab.errors == []
        assert port.inspector.asked[0] == (-1, 0)


async def test_what_users_chose_is_text_and_never_markup() -> None:
    async with a_page(a_view(3)) as (tab, _port, url):
        assert HOSTILE in await text(tab, "#why")
        assert HOSTILE in await text(tab, "#recent")
        await tab.eval("document.querySelector('#recent li:nth-child(2) a').click()")
        await tab.until("document.querySelector('#details-body h3')")
        assert HOSTILE in await text(tab, "#details")
        await tab.open(url + "#pod/%3Cimg%20src=x%3E/%E0%A4%A")  # no UTF-8: nothing is opened
        await tab.until("document.querySelectorAll('#cells button').length > 0")
        assert await tab.eval("document.getElementById('details').hidden")
        made = "document.querySelectorAll('img, script').length"
        assert await tab.eval(made) == 1  # its own script
        assert await tab.eval("window.struck === undefined")
        assert tab.errors == []


async def test_pools_are_shown_where_there_are_some() -> None:
    async with a_page(a_view(3)) as (tab, _port, _url):
        assert await tab.eval("document.getElementById('pools').hidden")
    held = {"holder": "replica-a", "waiting": 1200, "stopped": 3, "gapSeconds": 5.2}
    free = {"name": "", "holder": "", "waiting": 2, "stopped": 2, "gapSeconds": None}
    pools = [{**held, "name": HOSTILE}, free]
    async with a_page({**a_view(3), "pools": pools}) as (tab, _port, _url):
        rows = [" ".join(row.split()) for row in (await text(tab, "#pools tbody")).split("\n")]
        assert rows == [f"{HOSTILE} replica-a 1,200 3 5.2 s", "several \u2013 2 2 \u2013"]
        assert await tab.eval(CONTRASTS) == []
        assert tab.errors == []


async def test_a_pod_and_its_gang_are_a_click_away_and_back_goes_back() -> None:
    async with a_page(a_view(60)) as (tab, _port, _url):
        await tab.eval("document.querySelector('#why a').click()")
        await tab.until("document.querySelector('#details-body button')")
        told = await text(tab, "#details")
        for part in ("unschedulable", "3,300 equal pods", "0 of 5,000 nodes fit"):
            assert part in told
        assert "cpu: 1 free, 4 requested" in told
        await tab.eval("document.querySelector('#details-body button').click()")
        await tab.until("document.getElementById('details').innerText.includes('3 cpu less')")
        await picture(tab, "pod-details")
        await tab.eval("document.querySelector('#details-body a[href^=\"#gang\"]').click()")
        await tab.until("document.getElementById('details').innerText.includes('1 of 4 pods')")
        await tab.eval("history.back()")
        await tab.until("document.getElementById('details-title').innerText === 'pod ml/train-0'")
        await tab.eval(
            "document.getElementById('wanted').value = 'ml/nobody';"
            " document.querySelector('#search button').click()"
        )
        await tab.until(
            "document.getElementById('details').innerText.includes('does not know this pod')"
        )
        assert [one for one in tab.errors if "404" not in one] == []


async def test_a_reader_of_the_screen_finds_everything_named() -> None:
    async with a_page(a_view(60)) as (tab, _port, _url):
        tree = (await tab.call("Accessibility.getFullAXTree"))["nodes"]
        named = [
            (node["role"]["value"], node.get("name", {}).get("value", ""))
            for node in tree
            if not node.get("ignored")
        ]
        mute = [
            role
            for role, name in named
            if not name and role in ("button", "link", "textbox", "combobox", "image", "img")
        ]
        assert mute == []
        headings = [name for role, name in named if role == "heading"]
        assert headings[:3] == ["asched", "Pods by queue", "Why pods wait"]
        images = [name for role, name in named if role in ("image", "img")]
        assert len(images) == 3
        assert all("now: " in name for name in images)
        roles = [role for role, _ in named]
        assert {"main", "banner", "search", "status"} <= set(roles)
