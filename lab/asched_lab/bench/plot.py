"""Curves as an SVG, written by hand: axes, one line per curve, a legend."""

from collections.abc import Sequence
from typing import Final
from xml.sax.saxutils import escape

from asched_lab.bench.metrics import curve_of
from asched_lab.bench.suite import Result

WIDTH: Final = 900
HEIGHT: Final = 420
LEFT: Final = 70
RIGHT: Final = 20
TOP: Final = 40
BOTTOM: Final = 50
LEGEND_LINE: Final = 18
#: Distinguishable with colour blindness (Okabe and Ito).
COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
TICKS: Final = 5

#: Name, points, and upstream's threshold (0: none).
Curve = tuple[str, list[tuple[float, float]], float]


def svg(results: Sequence[Result]) -> str:
    """One picture of all results."""
    curves: list[Curve] = [
        (f"{result.workload.full_name}/{collection.name}", curve_of(collection), threshold)
        for result in results
        for collection in result.collections
        for threshold in (result.workload.threshold,)
    ]
    mode = results[0].mode if results else ""
    return picture(f"Pods scheduled per second, {mode} mode", "seconds", curves)


def picture(title: str, below: str, curves: Sequence[Curve]) -> str:
    """Curves over one axis with the title `below`; curves without points are left out."""
    curves = [curve for curve in curves if curve[1]]
    right = max((points[-1][0] for _, points, _ in curves), default=1.0) or 1.0
    top = max((value for _, points, _ in curves for _, value in points), default=1.0) * 1.05 or 1.0
    height = HEIGHT + LEGEND_LINE * len(curves)
    size = f'width="{WIDTH}" height="{height}"'
    font = 'font-family="sans-serif" font-size="12"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {height}" {font}>',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="22" font-size="15">{escape(title)}</text>',
        *_axes(right, top, below),
    ]
    for number, curve in enumerate(curves):
        parts += _curve(number, curve, right, top)
    return "\n".join([*parts, "</svg>", ""])


def _x(at_s: float, right_s: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * at_s / right_s


def _y(rate: float, top: float) -> float:
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * rate / top


def _axes(right_s: float, top: float, below: str) -> list[str]:
    parts = []
    for tick in range(TICKS + 1):
        rate, at_s = top * tick / TICKS, right_s * tick / TICKS
        y, x = _y(rate, top), _x(at_s, right_s)
        parts.append(
            f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}" stroke="#dddddd"/>'
        )
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{rate:.0f}</text>')
        parts.append(
            f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{at_s:.3g}</text>'
        )
    middle = (LEFT + WIDTH - RIGHT) / 2
    where = f'x="{middle:.0f}" y="{HEIGHT - 12}" text-anchor="middle"'
    parts.append(f"<text {where}>{escape(below)}</text>")
    return parts


def _curve(number: int, curve: Curve, right_s: float, top: float) -> list[str]:
    name, points, threshold = curve
    colour = COLOURS[number % len(COLOURS)]
    path = " ".join(f"{_x(at_s, right_s):.1f},{_y(rate, top):.1f}" for at_s, rate in points)
    y = HEIGHT + LEGEND_LINE * number + 6
    text = escape(name + (f" (upstream threshold {threshold:g})" if threshold else ""))
    parts = [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>',
        f'<rect x="{LEFT}" y="{y - 9}" width="12" height="12" fill="{colour}"/>',
        f'<text x="{LEFT + 18}" y="{y + 1}">{text}</text>',
    ]
    if threshold and threshold <= top:
        level = _y(threshold, top)
        parts.append(
            f'<line x1="{LEFT}" y1="{level:.1f}" x2="{WIDTH - RIGHT}" y2="{level:.1f}" '
            f'stroke="{colour}" stroke-dasharray="4 4"/>'
        )
    return parts
