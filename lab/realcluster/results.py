"""What the trials found, in a file, and the table that is made of it."""

import json
from pathlib import Path

COLUMNS = {
    "chart": "asched, by chart",
    "overlay": "asched, by overlay",
    "kube-scheduler": "kube-scheduler",
}


class Results:
    """Cells of the table by row and column; a trial that is repeated replaces its cell."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rows: dict[str, dict[str, str]] = {}
        if path.exists():
            self._rows = json.loads(path.read_text(encoding="utf-8"))

    def add(self, row: str, column: str, cell: str) -> None:
        self._rows.setdefault(row, {})[column] = cell
        self._path.write_text(json.dumps(self._rows, indent=1), encoding="utf-8")

    def table(self, titles: dict[str, str]) -> str:
        lines = [f"| | {' | '.join(COLUMNS.values())} |", f"|{'---|' * (len(COLUMNS) + 1)}"]
        for row, title in titles.items():
            cells = self._rows.get(row, {})
            lines.append(f"| {' | '.join((title, *(cells.get(name, '') for name in COLUMNS)))} |")
        return "\n".join(lines)
