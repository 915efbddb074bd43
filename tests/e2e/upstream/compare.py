"""Print the specs of two runs side by side: name, outcome and seconds of each.

python -m tests.e2e.upstream.compare OUT_A OUT_B
"""

import re
import sys
import xml.etree.ElementTree as ET


def load(folder):
    out = {}
    for t in ET.parse(folder + "/junit_01.xml").iter("testcase"):
        if t.find("skipped") is None and t.get("name").startswith("[It]"):
            f = t.find("failure")
            out[re.sub(r"^\[It\] ", "", t.get("name")).strip()] = (
                t.get("status"),
                float(t.get("time")),
                "" if f is None else (f.get("message") or "")[:200],
            )
    return out


a, b = load(sys.argv[1]), load(sys.argv[2])
for n in sorted(a.keys() | b.keys()):
    x, y = a.get(n, ("-", 0, "")), b.get(n, ("-", 0, ""))
    print(
        f"| {n} | {x[0]} {x[1]:.0f} | {y[0]} {y[1]:.0f} |"
        + (f" {x[2]} // {y[2]}" if x[2] or y[2] else "")
    )
for d, r in ((sys.argv[1], a), (sys.argv[2], b)):
    passed, seconds = sum(v[0] == "passed" for v in r.values()), sum(v[1] for v in r.values())
    print(f"{d}: {passed} of {len(r)} passed, {seconds:.0f} s", file=sys.stderr)
