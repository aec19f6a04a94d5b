"""Every kind of anomaly in a history of a few lines, and the same history without it."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.checker.anomalies import cycle_stories, share_stories
from tests.checker.anomalies.analysis import ANALYSES, analyse
from tests.checker.anomalies.anomaly import ALLOWED, FORBIDDEN, REPLICATED
from tests.checker.anomalies.cycle_search import shortest_cycle, strongly_connected
from tests.checker.anomalies.histories import Script

A, B = "t-0", "t-1"


def inconsistent_offsets(s: Script, *, bad: bool) -> None:
    s.send("p", "a", 0)
    s.send("q", "b", None if bad else 1)
    s.poll("r", (0, "b" if bad else "a"))


def reused_offset_of_an_aborted_send(s: Script, *, bad: bool) -> None:
    s.add("p", "txn", "fail", sends=[(A, "a", 0)])
    s.send("q", "b", 0 if bad else 2)


def duplicate(s: Script, *, bad: bool) -> None:
    s.send("p", "a", 0)
    s.send("p", "b", None)
    s.poll("r", (0, "a"), (1, "a" if bad else "b"))


def lost_write(s: Script, *, bad: bool) -> None:
    s.send("p", "a", 0)
    s.send("p", "b", 1)
    s.poll("r", *([] if bad else [(0, "a")]), (1, "b"))


def lost_although_once_read(s: Script, *, bad: bool) -> None:
    s.send("p", "a", None, "info")
    s.send("p", "b", 1)
    s.poll("r", (0, "a"), (1, "b"))
    s.final(t_0=[*([] if bad else [(0, "a")]), (1, "b")])


def unseen(s: Script, *, bad: bool) -> None:
    s.send("p", "a", 0)
    s.send("p", "b", 1)
    s.final(t_0=[(0, "a"), *([] if bad else [(1, "b")])])


def aborted_read(s: Script, *, bad: bool) -> None:
    s.add("p", "txn", "fail" if bad else "info", sends=[(A, "a", 0)])
    s.poll("r", (0, "a"))


def phantom(s: Script, *, bad: bool) -> None:
    s.send("p", "a", 0)
    s.poll("r", (0, "a"), *([(1, "x")] if bad else []))


def precommitted_read(s: Script, *, bad: bool) -> None:
    s.add("p", "txn", sends=[(A, "a", 0)], polls={A: [(0, "a")]} if bad else {})


def torn(s: Script, *, bad: bool) -> None:
    s.add("p", "txn", "info", sends=[(A, "a", None), (B, "b", None)])
    s.final(t_0=[(0, "a")], t_1=[] if bad else [(0, "b")])


def int_poll_skip(s: Script, *, bad: bool) -> None:
    for offset, value in enumerate("abc"):
        s.send("p", value, offset)
    s.poll("q", (1, "b"))
    s.poll("r", (0, "a"), *([] if bad else [(1, "b")]), (2, "c"))


def int_nonmonotonic_poll(s: Script, *, bad: bool) -> None:
    s.send("p", "a", 0)
    s.send("p", "b", 1)
    s.poll("r", *[(1, "b"), (0, "a")][:: 1 if bad else -1])


def poll_skip(s: Script, *, bad: bool) -> None:
    for offset, value in enumerate("abc"):
        s.send("p", value, offset)
    s.poll("q", (0, "a"), (1, "b"), (2, "c"))
    s.poll("r", (0, "a"))
    if not bad:
        s.add("r", "seek", keys=[A])
    s.poll("r", (2, "c"))


def poll_skip_of_the_beginning(s: Script, *, bad: bool) -> None:
    s.send("p", "a", 0)
    s.send("p", "b", 1)
    s.poll("q", (0, "a"))
    s.add("r", "assign", keys=[A])
    s.poll("r", *([] if bad else [(0, "a")]), (1, "b"))


def nonmonotonic_poll(s: Script, *, bad: bool) -> None:
    s.send("p", "a", 0)
    s.send("p", "b", 1)
    s.poll("r", (0, "a"), (1, "b"))
    if not bad:
        s.add("r", "assign", keys=[A])
    s.poll("r", (0, "a"), (1, "b"))


def nonmonotonic_send(s: Script, *, bad: bool) -> None:
    s.send("p", "a", 1 if bad else 0)
    s.send("p", "b", 0 if bad else 1)


def int_nonmonotonic_send(s: Script, *, bad: bool) -> None:
    s.add("p", "txn", sends=[(A, "a", 1 if bad else 0), (A, "b", 0 if bad else 1)])


def realtime_send(s: Script, *, bad: bool) -> None:
    """Of two processes: q has begun when p was answered."""
    s.send("p", "a", 1 if bad else 0)
    s.send("q", "b", 0 if bad else 1)


def hanging_transaction(s: Script, *, bad: bool) -> None:
    s.add("final", "ends", keys={A: [5 if bad else 6, 6]})


def group_offset_lost(s: Script, *, bad: bool) -> None:
    s.add("c", "commit", group="g", offsets={A: 3})
    s.add("c", "commit", group="g", offsets={A: 7})
    s.add("x", "committed", group="g", offsets={A: 3 if bad else 7})


def group_offset_said_and_lost(s: Script, *, bad: bool) -> None:
    s.add("c", "commit", "info", group="g", offsets={A: 3})
    s.add("x", "committed", group="g", offsets={A: 3})
    s.add("x", "committed", group="g", offsets={A: -1 if bad else 3})


def group_offset_aborted(s: Script, *, bad: bool) -> None:
    s.add("c", "txn", "fail" if bad else "ok", group="g", offsets={A: 3})
    s.add("x", "committed", group="g", offsets={A: 3})


def group_offset_nobody_asked_for(s: Script, *, bad: bool) -> None:
    s.add("c", "commit", group="g", offsets={A: 3})
    s.add("x", "committed", group="g", offsets={A: 4 if bad else 3})


def group_offset_beyond(s: Script, *, bad: bool) -> None:
    s.add("c", "commit", group="g", offsets={A: 4 if bad else 3})
    s.add("final", "ends", keys={A: [3, 3]})


def _job(s: Script, outputs: list[str]) -> None:
    s.add("j", "pipeline", group="g", inputs=[A], outputs=[B])
    s.send("p", "a", 0)
    s.send("p", "b", 1)
    s.poll("j", (0, "a"), (1, "b"))
    for offset, value in enumerate(outputs):
        s.add("j", "txn", sends=[(B, value, offset)], group="g", offsets={A: 2})
    s.add("x", "committed", group="g", offsets={A: 2})
    s.final(t_0=[(0, "a"), (1, "b")], t_1=list(enumerate(outputs)))


def output_duplicate(s: Script, *, bad: bool) -> None:
    _job(s, ["1|a", "2|b", "3|a"] if bad else ["1|a", "2|b"])


def output_missing(s: Script, *, bad: bool) -> None:
    _job(s, ["1|a"] if bad else ["1|a", "2|b"])


def output_without_input(s: Script, *, bad: bool) -> None:
    _job(s, ["1|a", "2|b", "3|c"] if bad else ["1|a", "2|b"])


CASES: list[tuple[Callable[..., None], dict[str, int]]] = [
    (inconsistent_offsets, {"inconsistent-offsets": 1, "lost-write": 1}),
    (reused_offset_of_an_aborted_send, {"inconsistent-offsets": 1}),
    (duplicate, {"duplicate": 1}),
    (lost_write, {"lost-write": 1}),
    (lost_although_once_read, {"lost-write": 1, "poll-skip": 1}),
    (unseen, {"unseen": 1}),
    (aborted_read, {"G1a": 1}),
    (phantom, {"phantom": 1}),
    (precommitted_read, {"precommitted-read": 1}),
    (torn, {"torn": 1}),
    (int_poll_skip, {"int-poll-skip": 1}),
    (int_nonmonotonic_poll, {"int-nonmonotonic-poll": 1}),
    (poll_skip, {"poll-skip": 1}),
    (poll_skip_of_the_beginning, {"poll-skip": 1}),
    (nonmonotonic_poll, {"nonmonotonic-poll": 1}),
    (nonmonotonic_send, {"nonmonotonic-send": 1, "realtime-send": 1}),
    (int_nonmonotonic_send, {"int-nonmonotonic-send": 1}),
    (realtime_send, {"realtime-send": 1, "G0-realtime": 1}),
    (cycle_stories.int_send_skip, {"int-send-skip": 1, "G0": 1}),
    (cycle_stories.g0, {"G0": 1}),
    (cycle_stories.g0_process, {"G0-process": 1}),
    (cycle_stories.g0_realtime, {"G0-realtime": 1}),
    (cycle_stories.g1c, {"G1c": 1, "G1c-ww": 1}),
    (cycle_stories.g1c_process, {"G1c-process": 1, "G1c-ww-process": 1}),
    (cycle_stories.g1c_realtime, {"G1c-realtime": 1, "G1c-ww-realtime": 1}),
    (cycle_stories.g1c_ww, {"G1c-ww": 1}),
    (cycle_stories.g1c_ww_process, {"G1c-ww-process": 1}),
    (cycle_stories.g1c_ww_realtime, {"G1c-ww-realtime": 1}),
    (cycle_stories.g_single, {"G-single": 1}),
    (cycle_stories.g_single_process, {"G-single-process": 1}),
    (cycle_stories.g_single_realtime, {"G-single-realtime": 1}),
    (cycle_stories.g2, {"G2": 1}),
    (cycle_stories.g2_process, {"G2-process": 1}),
    (cycle_stories.g2_realtime, {"G2-realtime": 1}),
    (hanging_transaction, {"hanging-transaction": 1}),
    (group_offset_lost, {"group-offset-lost": 1}),
    (group_offset_said_and_lost, {"group-offset-lost": 1}),
    (group_offset_aborted, {"group-offset-aborted": 1}),
    (group_offset_nobody_asked_for, {"group-offset-aborted": 1}),
    (group_offset_beyond, {"group-offset-beyond": 1}),
    (output_duplicate, {"output-duplicate": 1}),
    (output_missing, {"output-missing": 1}),
    (output_without_input, {"output-without-input": 1}),
    (share_stories.share_lost, {"share-lost": 1}),
    (share_stories.share_unfinished, {"share-unfinished": 2}),
    (share_stories.share_unfinished_before_the_limit, {"share-unfinished": 1}),
    (share_stories.share_redelivered, {"share-redelivered": 1}),
    (share_stories.share_redelivered_at_once, {"share-redelivered": 1}),
    (share_stories.share_redelivered_after_a_kill, {"share-redelivered": 1}),
    (share_stories.share_delivery_count, {"share-delivery-count": 1}),
    (share_stories.share_count_repeated, {"share-count-repeated": 1}),
]


@pytest.mark.parametrize(("story", "expected"), CASES, ids=[case[0].__name__ for case in CASES])
def test_found_where_it_is_and_nowhere_else(story: Any, expected: dict[str, int]) -> None:
    bad, good = Script(), Script()
    story(bad, bad=True)
    story(good, bad=False)
    told, untold = analyse(bad.ops), analyse(good.ops)
    assert told.forbidden == {kind: n for kind, n in expected.items() if kind in FORBIDDEN}
    assert untold.forbidden == {}
    allowed = {kind: n for kind, n in expected.items() if kind in ALLOWED}
    assert told.allowed.items() >= allowed.items()
    assert untold.allowed.keys().isdisjoint(allowed)


def test_every_kind_has_a_story() -> None:
    told = {kind for _, expected in CASES for kind in expected}
    assert told == (FORBIDDEN - REPLICATED) | ALLOWED


def test_report_tells_kinds_counts_and_examples() -> None:
    script = Script()
    cycle_stories.g1c(script, bad=True)
    report = analyse(script.ops)
    assert report.forbidden == {"G1c": 1}
    assert report.allowed == {"G1c-ww": 1}
    text = report.text()
    assert "ANOMALY G1c: 1" in text
    assert "p#0 -> q#1 -> p#0" in text or "q#1 -> p#0 -> q#1" in text
    assert text.endswith("anomalies: 1")
    assert len(ANALYSES) == 15


def test_tarjan_on_a_long_chain_and_a_ring() -> None:
    """Ten thousand deep: recursion would end here."""
    size = 10_000
    chain = [{n + 1} for n in range(size - 1)] + [set[int]()]
    assert strongly_connected(chain) == []
    chain[-1].add(0)
    chain[0].add(size - 1)
    assert strongly_connected(chain) == [list(range(size))]
    assert shortest_cycle(chain, list(range(size))) == [0, size - 1]


def test_two_rings_are_two_components() -> None:
    ring = [{1}, {2}, {0, 3}, {4}, {5}, {3}, {6}]
    assert sorted(strongly_connected(ring)) == [[0, 1, 2], [3, 4, 5]]
    assert shortest_cycle(ring, [3, 4, 5]) == [3, 4, 5]
