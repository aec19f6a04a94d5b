"""Histories as files."""

from pathlib import Path

import pytest

from tests.checker.history import HistoryError, Recorder, pair, read_history


def test_written_and_read_back(tmp_path: Path) -> None:
    one, two = Recorder(tmp_path / "one", "p"), Recorder(tmp_path / "two", "q")
    txn = one.invoke("txn", sends=[["t-0", "a", None]], polls={})
    two.note("poll", polls={"t-0": [[3, "x"]]}, final=True)
    lost = two.invoke("send", sends=[["t-0", "b", None]])
    one.complete(txn, "ok", "txn", sends=[["t-0", "a", 7]])
    one.close()
    two.close()
    ops = read_history([tmp_path / "one", tmp_path / "two"])
    assert [(op.name, op.f, op.outcome) for op in ops] == [
        ("p#0", "txn", "ok"),
        ("q#0", "poll", "ok"),
        ("q#1", "send", "info"),
    ]
    assert ops[0].sends == [("t-0", "a", 7)]
    assert ops[0].completed_ns is not None
    assert ops[0].invoked_ns < ops[1].invoked_ns < ops[0].completed_ns
    assert ops[1].polls == {"t-0": [(3, "x")]}
    assert ops[1].value == {"final": True}
    assert ops[2].i == lost
    assert ops[2].completed_ns is None


def test_cut_off_line_of_a_killed_process(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "one", "p")
    recorder.invoke("send", sends=[["t-0", "a", None]])
    recorder.close()
    path = tmp_path / "one"
    path.write_bytes(path.read_bytes() + b'{"i":0,"t":5,"proc":"p","ty')
    (op,) = read_history([path])
    assert op.outcome == "info"


@pytest.mark.parametrize(("kind", "f"), [("ok", "send"), ("invoke", "txn"), ("nonsense", "txn")])
def test_lines_that_are_no_history(kind: str, f: str) -> None:
    lines = [
        {"i": 0, "t": 1, "proc": "p", "type": "invoke", "f": "txn", "value": {}},
        {"i": 0, "t": 2, "proc": "p", "type": kind, "f": f, "value": {}},
    ]
    with pytest.raises(HistoryError, match="p#0"):
        pair(lines)
