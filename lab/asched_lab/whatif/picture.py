"""The picture of a result: one self-contained SVG.

There is a cell per node, the fullest first, coloured by its scarcest resource; a bar at the foot of
a cell marks new pods, a stroke through it a node that takes no pods. Hovering over a cell shows its
name. Colours go from light to dark in one hue, so that they can be distinguished in print and by
colour-blind readers.
"""

from typing import Final
from xml.sax.saxutils import escape, quoteattr

from asched_lab.whatif.fullness import NodeRoom
from asched_lab.whatif.result import Result

WIDTH: Final = 960
MARGIN: Final = 24
#: Sides of a cell, in pixels, for up to so many nodes.
SIZES: Final = ((60, 64), (250, 40), (1000, 24), (5000, 12))
SMALLEST: Final = 6
GAP: Final = 2
#: Cells this large carry their node's name and figure.
NAMED_FROM: Final = 40
SHADES: Final = ("#eff3ff", "#c6dbef", "#9ecae1", "#6baed6", "#3182bd", "#08519c", "#08306b")
#: Text on these is white.
DARK_FROM: Final = 4
NEW: Final = "#d55e00"
BAR_WIDTH: Final = 320
REASONS_MAX: Final = 6
REASON_LETTERS: Final = 140
LINE: Final = 20


def picture(title: str, result: Result) -> str:
    """Draw the whole SVG."""
    parts, y = _head(title, result), 64
    for room in result.rooms:
        parts += _bar(room.resource, room.before, room.after, y)
        y += LINE
    y += LINE
    nodes = sorted(result.nodes, key=lambda node: (-_fullness(node), node.node))
    size = next((side for most, side in SIZES if len(nodes) <= most), SMALLEST)
    columns = max((WIDTH - 2 * MARGIN) // (size + GAP), 1)
    for index, node in enumerate(nodes):
        left = MARGIN + index % columns * (size + GAP)
        parts += _cell(node, left, y + index // columns * (size + GAP), size)
    y += (-(-len(nodes) // columns)) * (size + GAP) + LINE
    parts += _legend(y)
    y += 2 * LINE
    for why, count in result.reasons().most_common(REASONS_MAX):
        summary = why if len(why) <= REASON_LETTERS else f"{why[:REASON_LETTERS]}..."
        parts.append(_text(MARGIN, y, f"{count} wait: {summary}"))
        y += LINE
    height = y + MARGIN
    label = quoteattr(f"{title}: {len(result.placed)} placed, {len(result.pending)} wait")
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}"'
        f' viewBox="0 0 {WIDTH} {height}" role="img" aria-label={label}'
        ' font-family="sans-serif" font-size="12">'
    )
    paper = f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>'
    return "\n".join([opening, paper, *parts, "</svg>", ""])


def _head(title: str, result: Result) -> list[str]:
    waits = f", {len(result.pending)} wait" if result.pending else ""
    evicted = f", {len(result.evicted)} evicted" if result.evicted else ""
    summary = f"{len(result.placed)} pods placed{waits}{evicted}, {len(result.nodes)} nodes"
    return [_text(MARGIN, 26, title, size=15), _text(MARGIN, 46, summary)]


def _text(x: int, y: float, text: str, *, size: int = 12, colour: str = "#222222") -> str:
    return f'<text x="{x}" y="{y}" font-size="{size}" fill="{colour}">{escape(text)}</text>'


def _bar(name: str, before: float, after: float, y: int) -> list[str]:
    """Requests before the changes, and what is added to them."""
    left = MARGIN + 220
    was, now = (BAR_WIDTH * min(share, 1.0) for share in (before, after))
    rest = f'<rect y="{y - 10}" height="12"'
    return [
        _text(MARGIN, y, name),
        f'{rest} x="{left}" width="{BAR_WIDTH}" fill="#eeeeee"/>',
        f'{rest} x="{left}" width="{now:.1f}" fill="{NEW if after > before else SHADES[3]}"/>',
        f'{rest} x="{left}" width="{min(was, now):.1f}" fill="{SHADES[4]}"/>',
        _text(left + BAR_WIDTH + 12, y, f"{before:.1%} before, {after:.1%} after"),
    ]


def _fullness(node: NodeRoom) -> float:
    return max(node.shares.values(), default=0.0)


def _cell(node: NodeRoom, x: int, y: int, size: int) -> list[str]:
    full = _fullness(node)
    level = min(int(full * len(SHADES)), len(SHADES) - 1)
    shares = [f"{name} {share:.0%}" for name, share in node.shares.items()]
    new = f", {node.new} new" if node.new else ""
    state = "" if node.is_open else ", takes no pods"
    title = f"{node.node}: {', '.join(shares)}; {node.pods} pods{new}{state}"
    place, fill = f'x="{x}" y="{y}" width="{size}" height="{size}"', SHADES[level]
    parts = [
        f"<g><title>{escape(title)}</title>",
        f'<rect {place} fill="{fill}" stroke="#cccccc"/>',
    ]
    if node.new:
        foot = max(size // 8, 2)
        parts.append(
            f'<rect x="{x}" y="{y + size - foot}" width="{size}" height="{foot}" fill="{NEW}"/>'
        )
    if not node.is_open:
        parts.append(f'<line x1="{x}" y1="{y + size}" x2="{x + size}" y2="{y}" stroke="#222222"/>')
    if size >= NAMED_FROM:
        colour = "#ffffff" if level >= DARK_FROM else "#222222"
        letters = size // 7
        name = node.node if len(node.node) <= letters else f"…{node.node[1 - letters :]}"
        parts.append(_text(x + 4, y + 14, name, size=10, colour=colour))
        parts.append(_text(x + 4, y + 28, f"{full:.0%}", size=11, colour=colour))
    return [*parts, "</g>"]


def _legend(y: int) -> list[str]:
    parts = [_text(MARGIN, y, "asked for, of the scarcest resource:")]
    for index, shade in enumerate(SHADES):
        left = MARGIN + 220 + index * 64
        parts.append(
            f'<rect x="{left}" y="{y - 10}" width="12" height="12" fill="{shade}"'
            ' stroke="#cccccc"/>'
        )
        parts.append(_text(left + 16, y, f"{index / len(SHADES):.0%}"))
    left = MARGIN + 220 + len(SHADES) * 64
    parts.append(f'<rect x="{left}" y="{y - 1}" width="12" height="3" fill="{NEW}"/>')
    parts.append(_text(left + 16, y, "new pods; struck through: takes none"))
    return parts
