"""The page itself: samples of every kind of family, as Prometheus reads them."""

import asyncio
import threading
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from asched.serve.telemetry import metrics as module
from asched.serve.telemetry.exposition import Exposition
from asched.serve.telemetry.instruments import Families
from asched.serve.telemetry.metrics import Metrics
from asched.serve.telemetry.page import MetricsPage

Shown = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def shown(families: Families, exposition: Exposition | None = None) -> tuple[Shown, dict[str, Any]]:
    """Samples by name and labels, and families by name, as Prometheus' own parser reads them."""
    text = MetricsPage(families, exposition or Exposition()).text().decode()
    found: Shown = {}
    heads = {}
    for family in text_string_to_metric_families(text):
        if not family.name.startswith(("process_", "python_")):
            heads[family.name] = family
            for sample in family.samples:
                key = sample.name, tuple(sorted(sample.labels.items()))
                assert key not in found
                found[key] = sample.value
    return found, heads


def some() -> Families:
    families = Families()
    families.counter("asked_total", "How often.", ("who", "result")).of("a", "ok").value = 3
    families.gauge("state", "Now.").of().value = -2
    times = families.histogram("took_seconds", "How long.", (1.0, 2.5, 5.0), ("who",))
    for value in (0.5, 1.0, 1.5, 2.5, 7.0):
        times.of("a").observe(value)
    families.pulled("seen", "gauge", "Looked up.", ("x",), lambda: {("2",): 2.0, ("1",): 1.0})
    families.counter("nothing_total", "Nobody.", ("who",))
    return families


def test_samples_are_told_by_name_and_labels() -> None:
    """Buckets add up: each counts whatever is not above its bound, the last one everything."""
    found, _ = shown(some())
    assert found == {
        ("asked_total", (("result", "ok"), ("who", "a"))): 3,
        ("state", ()): -2,
        ("seen", (("x", "1"),)): 1,
        ("seen", (("x", "2"),)): 2,
        ("took_seconds_bucket", (("le", "1.0"), ("who", "a"))): 2,
        ("took_seconds_bucket", (("le", "2.5"), ("who", "a"))): 4,
        ("took_seconds_bucket", (("le", "5.0"), ("who", "a"))): 4,
        ("took_seconds_bucket", (("le", "+Inf"), ("who", "a"))): 5,
        ("took_seconds_sum", (("who", "a"),)): 12.5,
        ("took_seconds_count", (("who", "a"),)): 5,
    }


def test_heads_tell_kind_and_words_and_families_without_samples_have_none() -> None:
    _, heads = shown(some())
    assert {name: (one.type, one.documentation) for name, one in heads.items()} == {
        "asked": ("counter", "How often."),
        "seen": ("gauge", "Looked up."),
        "state": ("gauge", "Now."),
        "took_seconds": ("histogram", "How long."),
    }


def test_families_come_by_name_and_children_by_labels() -> None:
    families = Families()
    for name in ("b", "c", "a"):
        gauge = families.gauge(name, "x", ("l",))
        for label in ("2", "3", "1"):
            gauge.of(label).value = 1
    assert list(shown(families)[0]) == [
        (name, (("l", label),)) for name in "abc" for label in "123"
    ]


def test_a_constrained_family_keeps_its_head_and_its_sum() -> None:
    """By an allow list of each of two labels, and none of the third."""
    families = Families()
    counter = families.counter("asked_total", "How often.", ("a", "b", "c"))
    for number, labels in enumerate(("xyz", "xyw", "qyz", "xqz", "qqz")):
        counter.of(*labels).value = 10**number
    lists = {"asked_total,a": "x,other", "asked_total,b": "y"}

    found, heads = shown(families, Exposition.of((), lists))

    assert {tuple(dict(labels)[name] for name in "abc"): v for (_, labels), v in found.items()} == {
        ("x", "y", "z"): 1,
        ("x", "y", "w"): 10,
        ("unexpected", "y", "z"): 100,
        ("x", "unexpected", "z"): 1_000,
        ("unexpected", "unexpected", "z"): 10_000,
    }
    assert (heads["asked"].type, heads["asked"].documentation) == ("counter", "How often.")


@pytest.mark.parametrize("name", ["asked_total", "state", "took_seconds"])
def test_a_disabled_family_is_missing_and_no_other(name: str) -> None:
    _, heads = shown(some(), Exposition.of((name, "asked"), {}))
    assert heads.keys() == {"asked", "seen", "state", "took_seconds"} - {
        name.removesuffix("_total")
    }


def test_the_process_is_told_of() -> None:
    text = MetricsPage(Families(), Exposition()).text().decode()
    for name in ("process_cpu_seconds_total", "process_resident_memory_bytes", "python_gc_"):
        assert f"\n{name}" in text


async def test_a_page_is_made_again_when_it_is_old_or_what_it_counted_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now_s = 0.0
    monkeypatch.setattr(module, "monotonic", lambda: now_s)
    metrics = Metrics()
    pages = []
    for now_s, scheduled in ((0.0, 1), (0.999, 2), (1.0, 3)):  # noqa: B007
        metrics.scheduler.attempts.of("scheduled", "p").value = scheduled
        pages.append(await metrics.page())
    told = [b'result="scheduled"} %d.0' % count for count in (1, 1, 3)]
    assert [line in page for line, page in zip(told, pages, strict=True)] == [True] * 3
    metrics.reset()
    assert b'result="scheduled"' not in await metrics.page()


async def test_one_page_at_a_time_is_rendered_and_not_by_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    metrics = Metrics()
    threads = []

    def render() -> bytes:
        threads.append(threading.current_thread())
        return b"page"

    monkeypatch.setattr(metrics, "render", render)
    assert await asyncio.gather(*(metrics.page() for _ in range(5))) == [b"page"] * 5
    (one,) = threads
    assert one is not threading.main_thread()
