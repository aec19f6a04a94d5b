"""What a member of a share group makes of answers, and since when it can have had its records."""

from collections import deque
from pathlib import Path
from typing import Any

from tests.checker.clients.share_work import BUFFERED_NS, Acquisitions, Member, is_stubborn
from tests.checker.history import Recorder, read_history

MS = 1_000_000


class Java:
    """Gives the answers it was given."""

    def __init__(self) -> None:
        self.answers: deque[dict[str, Any]] = deque()

    def ask(self, do: str, **_task: Any) -> dict[str, Any]:
        return self.answers.popleft() if do in ("sharePoll", "shareCommit", "close") else {}


def outcomes(path: Path) -> list[tuple[str, str]]:
    return [(op.f, op.outcome) for op in read_history([path])]


def member(path: Path) -> tuple[Member, Java]:
    java = Java()
    return Member(Recorder(path, "jshare0.1"), java), java


def test_an_acknowledgement_is_ok_when_all_of_it_is(tmp_path: Path) -> None:
    path = tmp_path / "history"
    one, java = member(path)
    java.answers.append({"records": [["t", 0, 5, "a", 1], ["t", 0, 6, "b", 1]], "said": []})
    assert one.poll(100) == {"t-0": [(5, "a", 1), (6, "b", 1)]}
    one.say("t-0", [(5, "ACCEPT"), (6, "RELEASE")])
    java.answers.append({"records": [], "said": [["t", 0, [5], None]]})
    one.poll(100)
    assert outcomes(path) == [("deliver", "ok"), ("acknowledge", "info")]
    java.answers.append({"said": [["t", 0, [6], None]]})
    one.commit()
    assert outcomes(path) == [("deliver", "ok"), ("acknowledge", "ok")]


def test_a_refusal_says_nothing(tmp_path: Path) -> None:
    path = tmp_path / "history"
    one, java = member(path)
    one.say("t-0", [(5, "ACCEPT"), (6, "ACCEPT")])
    java.answers.append(
        {"said": [["t", 0, [5], None], ["t", 0, [6], "InvalidRecordStateException"]]}
    )
    one.commit()
    assert outcomes(path) == [("acknowledge", "info")]


def test_answers_that_may_be_for_an_earlier_one(tmp_path: Path) -> None:
    """The same record again, before the first answer."""
    path = tmp_path / "history"
    one, java = member(path)
    one.say("t-0", [(5, "RELEASE")])
    one.say("t-0", [(5, "ACCEPT")])
    java.answers.append({"said": [["t", 0, [5], None], ["t", 0, [5], None]]})
    one.close()
    assert outcomes(path) == [("acknowledge", "info"), ("acknowledge", "info")]


def test_acquired_since() -> None:
    """Not longer ago than a client waits for an answer; a time of standing still is no waiting."""
    now = [0]
    acquisitions = Acquisitions(lambda: now[0])
    assert acquisitions.since_ns() == 0
    for _ in range(100):
        now[0] += 200 * MS
        acquisitions.step()
    assert acquisitions.since_ns() == now[0] - BUFFERED_NS - 200 * MS
    before = acquisitions.since_ns()
    now[0] += 9_000 * MS
    acquisitions.step()
    assert acquisitions.since_ns() == before


def test_some_are_stubborn() -> None:
    stubborn = sum(is_stubborn(f"send0.1:{n}") for n in range(10_000))
    assert 20 < stubborn < 100
