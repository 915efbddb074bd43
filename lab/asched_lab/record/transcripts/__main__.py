r"""Record again what a kube-apiserver answers, by the requests of the recordings that there are.

    python -m asched_lab.record.transcripts --control-plane FOLDER --out NEW [SCENARIO ...]

Each scenario has a server of its own, started from etcd and kube-apiserver in FOLDER. NEW gets the
transcripts and their index; differences from the answers recorded before are counted, and printed
with --differences. A new scenario is a transcript with requests whose `response` is
`{"status": 200}`, and an entry of the index.

Not recorded again are the groups `compact` and `inflight`, whose answers depend on what happens
beside the requests, and `kubectl_*`, whose requests kubectl makes.

Exit status: 0 if every scenario was recorded, 1 if one was not, 2 for usage.
"""

# ruff: noqa: T201 - a command prints

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from asched.kube.certificates import client_context
from asched_lab.bench.world import WorkloadFailedError
from asched_lab.measure.real import RealServer
from asched_lab.record.transcripts.placeholders import Placeholders
from asched_lab.record.transcripts.replay import PLACEHOLDER, Answer, Replay

Json = Any

RECORDINGS: Final = Path("tests/recordings/apiserver")
#: Groups that requests alone repeat, with their flags of kube-apiserver.
GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "main": (
        "--client-ca-file={folder}/serving.crt",
        "--requestheader-client-ca-file={folder}/serving.crt",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
    ),
    "admission": (),
    "noanon": ("--anonymous-auth=false",),
}
SHOWN_HEADERS: Final = (
    "retry-after", "warning", "www-authenticate", "allow", "etag", "content-encoding",
)  # fmt: skip
#: Larger bodies are not stored.
BODY_BYTES_MAX: Final = 400_000
OMITTED: Final = {"$omitted": True}
#: What is copied from a line that is recorded again.
COPIED: Final = ("as", "note", "during", "pause_s")


class UnrecordedError(Exception):
    """Why a scenario cannot be recorded, in one line."""


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m asched_lab.record.transcripts",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--control-plane", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--out", type=Path, required=True, metavar="NEW")
    parser.add_argument("--recordings", type=Path, default=RECORDINGS, metavar="FOLDER")
    parser.add_argument("--differences", action="store_true", help="print them")
    parser.add_argument("scenarios", nargs="*", metavar="SCENARIO", help="default: all")
    args = parser.parse_args(argv)
    index = json.loads((args.recordings / "index.json").read_text(encoding="utf-8"))
    known = index["scenarios"]
    if unknown := set(args.scenarios) - known.keys():
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}")
    chosen = args.scenarios or [
        name for name, about in known.items() if _is_repeatable(name, about)
    ]
    (args.out / "transcripts").mkdir(parents=True, exist_ok=True)
    return asyncio.run(_record_all(args, known, chosen))


def _is_repeatable(name: str, about: Json) -> bool:
    return about["group"] in GROUPS and not name.startswith("kubectl_")


def new_lines(replay: Replay, placeholders: Placeholders) -> Iterator[Json]:
    """The lines of a transcript with the answers of a replay. Raises UnrecordedError."""
    for index, answer in sorted(replay.answers.items()):
        prefix = _generate_name(replay.lines[index]["request"]["body"])
        if prefix and answer.status == 201:
            placeholders.add_generated(json.loads(answer.raw)["metadata"]["name"], prefix)
    for index, answer in sorted(replay.answers.items()):
        old = replay.lines[index]
        new = {name: old[name] for name in COPIED if name in old}
        new["request"] = _request(old["request"], replay, placeholders, index)
        new["response"] = _response(old, answer, placeholders)
        if "events" in old:
            new["events"] = [placeholders.value(frame) for frame in answer.frames]
            new["closed_by"] = "server" if answer.is_ended or answer.status != 200 else "client"
        yield new


def _generate_name(body: Json) -> str:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return str((metadata or {}).get("generateName", ""))


def _request(old: Json, replay: Replay, placeholders: Placeholders, index: int) -> Json:
    """A request with the placeholders of the new answers. Raises UnrecordedError."""

    def bound(match: re.Match[str]) -> str:
        if not match[0][-1].isdigit():
            return match[0]
        if match[0] not in replay.bound:
            raise UnrecordedError(f"line {index + 1} sends {match[0]}, which no answer had")
        return replay.bound[match[0]]

    sent = _in_strings(old, lambda text: PLACEHOLDER.sub(bound, text))
    headers = {name: placeholders.header(name, text) for name, text in sent["headers"].items()}
    return {
        "method": sent["method"],
        "path": placeholders.text(sent["path"]),
        "query": placeholders.query(sent["query"]),
        "headers": headers,
        "body": placeholders.value(sent["body"]),
    }


def _in_strings(value: Json, change: Callable[[str], str]) -> Json:
    if isinstance(value, dict):
        return {change(name): _in_strings(entry, change) for name, entry in value.items()}
    if isinstance(value, list):
        return [_in_strings(entry, change) for entry in value]
    return change(value) if isinstance(value, str) else value


def _response(old: Json, answer: Answer, placeholders: Placeholders) -> Json:
    content_type = answer.headers.get("Content-Type", "")
    new: Json = {"status": answer.status, "content_type": content_type}
    headers = {
        name: placeholders.header(name, answer.headers[name])
        for name in SHOWN_HEADERS
        if name in answer.headers
    }
    if headers:
        new["headers"] = headers
    if "events" in old and answer.status == 200:
        return new
    if old["response"].get("body") == OMITTED or len(answer.raw) > BODY_BYTES_MAX:
        new["body"] = OMITTED
    elif not answer.raw:
        new["body"] = None
    elif "json" in content_type:
        new["body"] = placeholders.value(json.loads(answer.raw))
    else:
        new["body"] = (
            placeholders.message(answer.raw.decode()) if "text" in content_type else OMITTED
        )
    return new


async def _record_all(args: argparse.Namespace, known: Json, names: list[str]) -> int:
    recorded: Json = {}
    failed, version = 0, ""
    for name in names:
        try:
            lines, about, version = await record(args, name, known[name])
        except (UnrecordedError, WorkloadFailedError, TimeoutError) as error:
            failed += 1
            print(f"{name}: not recorded: {error}", flush=True)
            continue
        recorded[name] = about
        text = "".join(
            json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n" for line in lines
        )
        (args.out / "transcripts" / f"{name}.jsonl").write_text(text, encoding="utf-8")
    index = {"server": version, "scenarios": recorded}
    text = json.dumps(index, indent=1, ensure_ascii=False) + "\n"
    (args.out / "index.json").write_text(text, encoding="utf-8")
    return 1 if failed else 0


async def record(args: argparse.Namespace, name: str, about: Json) -> tuple[list[Json], Json, str]:
    """Lines, entry of the index and the server's version. Raises UnrecordedError,
    WorkloadFailedError.
    """
    if not _is_repeatable(name, about):
        raise UnrecordedError("requests alone do not repeat it")
    text = (args.recordings / "transcripts" / f"{name}.jsonl").read_text(encoding="utf-8")
    old = [json.loads(line) for line in text.splitlines()]
    group = about["group"]
    server = RealServer(
        args.control_plane, flags=GROUPS[group], has_default_admission=group == "admission"
    )
    certificate = server.folder / "serving.crt"
    async with server:
        # The caches of watches then do not reach back to the first version.
        await server.kill_and_restart(away_s=0.0)
        context = client_context(authorities=certificate.read_bytes())
        replay = Replay(name, old, server, group, context)
        found = await replay.run()
        version = await replay.version()
        placeholders = Placeholders(
            server.url.rpartition("/")[2], shows_managers=name == "server_side_apply"
        )
    lines = [*new_lines(replay, placeholders)]
    print(f"{name}: {len(lines)} lines, {len(found)} differences", flush=True)
    if args.differences:
        print("\n".join(map(str, found)), flush=True)
    about = {
        "about": about["about"],
        "group": group,
        "lines": len(lines),
        "rv_ascending": placeholders.versions(),
    }
    return lines, about, version


if __name__ == "__main__":
    sys.exit(main())
