"""Where the recorded corpora lie: `ASCHED_SHARED`, by default `../shared` beside the checkout.

The project never needs them to run. A test that reads them skips visibly where they are absent.
"""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SHARED = Path(os.environ.get("ASCHED_SHARED", ROOT.parent / "shared"))


def shared_path(relative: str) -> Path:
    """The path of a recorded file, or a visible skip of the calling test."""
    path = SHARED / relative
    if not path.exists():
        pytest.skip(f"{relative} is not here; set ASCHED_SHARED to the folder of the recordings")
    return path
