"""`make pages` and `make docs`: write the generated pages of docs/, or build the site.

    python -m asched_lab.pages          write the pages of `generated.py`
    python -m asched_lab.pages site     build the site into build/site; a broken link fails

Both run in a clone of the repository. Exit status: 0, or 1 if the site cannot be built.
"""

import sys
from pathlib import Path

from asched_lab.pages import site
from asched_lab.pages.generated import PAGES


def main() -> int:
    """Run one of the two commands."""
    root = Path.cwd()
    if sys.argv[1:] == []:
        for name, render in PAGES.items():
            (root / "docs" / name).write_text(render(root), encoding="utf-8")
        return 0
    if sys.argv[1:] != ["site"]:
        sys.stderr.write("usage: python -m asched_lab.pages [site]\n")
        return 2
    missing = site.missing_pages(root)
    if missing:
        sys.stderr.write(f"mkdocs.yml names pages that docs/ lacks: {', '.join(missing)}\n")
        return 1
    try:
        return site.build(root)
    except site.MissingError as error:
        sys.stderr.write(f"{error}\n")
        return 1


if __name__ == "__main__":
    sys.exit(main())
