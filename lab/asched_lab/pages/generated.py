"""The generated pages of docs/, by file name; each function takes the root of the clone."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from asched_lab.pages.configuration import configuration_page
from asched_lab.pages.metrics import metrics_page
from asched_lab.pages.versions import versions_page

PAGES: Final[Mapping[str, Callable[[Path], str]]] = {
    "metrics.md": metrics_page,
    "configuration.md": configuration_page,
    "results/versions.md": versions_page,
}
