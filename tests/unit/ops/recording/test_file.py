"""A recording can be read as far as it was written, whatever ended it."""

import gzip
import os
import stat
from pathlib import Path

import pytest

from asched.ops.recording.recorder import FILES_KEPT, FullError, RecordingFile, numbered
from asched_lab.replay.lines import RecordingReader

BYTES_MAX = 1 << 20


def lines(count: int) -> list[bytes]:
    return [
        b'{"line":%d,"padding":"%s"}' % (number, os.urandom(8).hex().encode())
        for number in range(count)
    ]


def written(path: Path, content: list[bytes], every: int = 10) -> RecordingFile:
    made = RecordingFile(path, BYTES_MAX)
    for number, line in enumerate(content, 1):
        made.add(line)
        if number % every == 0:
            made.flush()
    return made


def test_what_was_closed_is_whole_and_any_gzip_reads_it(tmp_path: Path) -> None:
    content = lines(95)
    written(tmp_path / "r", content).close()

    reader = RecordingReader(tmp_path / "r")

    assert list(reader) == content
    assert (reader.is_whole, reader.problem) == (True, "")
    assert gzip.decompress((tmp_path / "r").read_bytes()).splitlines() == content


def test_a_crash_loses_what_was_not_flushed(tmp_path: Path) -> None:
    content = lines(95)
    written(tmp_path / "r", content).give_up()

    reader = RecordingReader(tmp_path / "r")

    assert list(reader) == content[:90]
    assert not reader.is_whole
    assert "ends in the middle" in reader.problem


@pytest.mark.parametrize("cut", range(0, 3000, 271))
def test_wherever_a_file_is_cut_its_beginning_can_be_read(tmp_path: Path, cut: int) -> None:
    content = lines(95)
    written(tmp_path / "r", content).close()
    whole = (tmp_path / "r").read_bytes()
    (tmp_path / "r").write_bytes(whole[: max(len(whole) - 1 - cut, 0)])

    reader = RecordingReader(tmp_path / "r")
    found = list(reader)

    assert found == content[: len(found)]
    assert not reader.is_whole
    assert reader.problem


def test_a_byte_that_rots_ends_it_there(tmp_path: Path) -> None:
    content = lines(500)
    written(tmp_path / "r", content).close()
    rotten = bytearray((tmp_path / "r").read_bytes())
    rotten[len(rotten) // 2] ^= 0xFF
    (tmp_path / "r").write_bytes(rotten)

    reader = RecordingReader(tmp_path / "r")
    list(reader)

    assert not reader.is_whole
    assert reader.problem


def test_it_ends_at_its_bound_and_stays_readable(tmp_path: Path) -> None:
    content = lines(2000)
    made = RecordingFile(tmp_path / "r", 10_000)

    def fill() -> None:
        for line in content:
            made.add(line)
            made.flush()

    with pytest.raises(FullError, match="10000 bytes"):
        fill()
    made.give_up()

    found = list(RecordingReader(tmp_path / "r"))

    assert (tmp_path / "r").stat().st_size <= 10_000
    assert found == content[: len(found)]
    assert len(found) > 100


def test_earlier_lives_move_on_and_the_oldest_goes(tmp_path: Path) -> None:
    path = tmp_path / "r"
    for life in range(FILES_KEPT + 3):
        written(path, [b"life %d" % life]).close()

    kept = [path, *(numbered(path, number) for number in range(1, FILES_KEPT + 1))]
    assert sorted(tmp_path.iterdir()) == sorted(kept)
    newest = FILES_KEPT + 2
    assert [next(iter(RecordingReader(one))) for one in kept] == [
        b"life %d" % (newest - age) for age in range(FILES_KEPT + 1)
    ]


def test_only_its_owner_reads_it(tmp_path: Path) -> None:
    written(tmp_path / "r", lines(1)).close()

    assert stat.S_IMODE((tmp_path / "r").stat().st_mode) == 0o600


def test_a_link_that_somebody_laid_is_not_followed(tmp_path: Path) -> None:
    """It is moved on like an earlier recording; what it leads to is left alone."""
    (tmp_path / "precious").write_text("precious")
    (tmp_path / "r").symlink_to(tmp_path / "precious")

    written(tmp_path / "r", lines(3)).close()

    assert (tmp_path / "precious").read_text() == "precious"
