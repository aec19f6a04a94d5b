"""When a share group has had all: silence of its last member is not enough."""

from collections.abc import Callable
from pathlib import Path

from tests.checker.history import Recorder
from tests.checker.share_end import SHARE_QUIET_S, drain, values_given

Script = list[tuple[float, list[str]]]


class Group:
    """What its last member is given, and when: of a script, then each mark after a moment."""

    def __init__(self, script: Script, *, reads_marks: bool = True) -> None:
        self.now = 0.0
        self.marks = 0
        self._script = script
        self._reads_marks = reads_marks

    def rest(self, seconds: float) -> None:
        self.now += seconds

    def clock(self) -> float:
        return self.now

    def quiet_s(self) -> float:
        return self.now - max((at for at, _ in self._script if at <= self.now), default=0.0)

    def values(self) -> list[str]:
        return [value for at, given in self._script if at <= self.now for value in given]

    def mark(self) -> frozenset[str]:
        self.marks += 1
        marks = [f"mark-{self.marks}-{key}" for key in range(2)]
        if self._reads_marks:
            # Behind all that comes before it in the script.
            last = max([self.now, *(at for at, _ in self._script)])
            self._script += [(last + 0.5, marks[:1]), (last + 1.0, marks[1:])]
        return frozenset(marks)

    def drain(self, mark: Callable[[], frozenset[str]] | None = None) -> list[str]:
        return drain(self, mark or self.mark, timeout_s=60.0, rest=self.rest, clock=self.clock)


def test_a_member_that_has_had_all_is_given_the_marks_alone() -> None:
    group = Group([(2.0, ["a", "b"]), (2.5, ["b"])])
    assert group.drain() == []
    assert group.marks == 1
    assert group.now >= 2.5 + SHARE_QUIET_S


def test_a_member_that_begins_late_is_waited_for() -> None:
    """The one of a busy machine joined after nine seconds, had six records, and was ended."""
    late = SHARE_QUIET_S + 1.0
    group = Group([(late, ["a"]), (late + 0.1, ["b"]), (late + 3.0, ["c"])])
    assert group.drain() == []
    assert {"a", "b", "c"} <= set(group.values())
    assert group.marks == 2


def test_a_record_that_comes_with_the_marks_asks_for_another_round() -> None:
    """It may be released once more."""
    group = Group([(1.0, ["a"])])

    def mark() -> frozenset[str]:
        marks = group.mark()
        if group.marks == 1:
            group._script.append((group.now + 0.7, ["a"]))
        return marks

    assert group.drain(mark) == []
    assert group.marks == 2


def test_a_mark_that_never_comes_is_said() -> None:
    """A partition that nobody is given any more."""
    group = Group([(1.0, ["a"])], reads_marks=False)
    assert group.drain() == ["share group: mark-1-0, mark-1-1 sent and not delivered"]


def test_a_group_that_is_given_records_for_ever_is_said() -> None:
    group = Group([(float(at), ["a"]) for at in range(100)])
    assert group.drain() == ["share group: still being delivered to"]


def test_what_was_given_is_read_from_histories(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "history", "jsharelast0.1")
    recorder.note("sharing", group="g", keys=["t-0"], deliveries_max=8)
    recorder.note("deliver", group="g", deliveries={"t-0": [[4, "a", 1], [5, "b", 2]]})
    recorder.invoke("acknowledge", group="g", key="t-0", acks=[[4, "ACCEPT"]])
    recorder.note("deliver", group="g", deliveries={"t-1": [[0, "c", 1]]})
    assert values_given([tmp_path / "history", tmp_path / "none"]) == ["a", "b", "c"]
