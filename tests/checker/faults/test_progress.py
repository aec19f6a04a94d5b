"""Whether clients that stand still are noticed."""

from collections import Counter

from tests.checker.faults.progress import Progress, kind_of, progress_of
from tests.checker.history import Op

S = 1_000_000_000


def done(proc: str, at_s: float, f: str = "txn", outcome: str = "ok") -> Op:
    """An operation that ended at a time."""
    return Op(proc, 0, f, outcome, int((at_s - 0.1) * S), int(at_s * S))


def test_kind_of_process() -> None:
    assert kind_of("nextjob1.3") == "nextjob"
    assert kind_of("send0.12") == "send"


def test_counts_what_succeeds_within_faults() -> None:
    ops = [
        done("job0.1", 5),
        done("job0.1", 11),
        done("job1.1", 19),
        done("job1.1", 20.5),
        done("send0.1", 31, "send"),
        done("send0.1", 32, "send", "info"),
        done("read0.1", 33, "assign"),
    ]
    found = progress_of(ops, [(10 * S, 20 * S), (30 * S, 35 * S)], (0, 40 * S))
    assert found.ok == Counter({"job": 2, "send": 1})
    assert found.seconds == 15
    # From the send at 31 s to the end.
    assert found.silence_s == 10.5


def test_silence_at_the_end_counts() -> None:
    found = progress_of([done("job0.1", 1)], [], (0, 40 * S))
    assert found.silence_s == 39
    assert found.stalls(["job"]) == ["nothing succeeded for 39 s"]


def test_what_succeeds_after_the_run_does_not_count() -> None:
    found = progress_of([done("job0.1", 50)], [(0, 60 * S)], (0, 40 * S))
    assert found.ok == Counter()


def test_only_time_in_which_clients_can_be_served_is_asked_for() -> None:
    """Added up: windows between faults may each be shorter than what is too long."""
    ops = [done("job0.1", 4), done("job0.1", 70), done("job0.1", 75)]
    served = [(0, 10 * S), (20 * S, 35 * S), (60 * S, 80 * S)]
    found = progress_of(ops, [(30 * S, 75 * S)], (0, 80 * S), served)
    assert (found.silence_s, found.served_silence_s) == (66, 6 + 15 + 10)
    assert (found.seconds, found.served_s) == (45, 5 + 15)
    assert found.stalls(["job"]) == ["nothing succeeded for 31 s"]
    assert progress_of(ops, [], (0, 80 * S), served[:2]).stalls(["job"]) == []


def test_each_kind_must_get_on() -> None:
    found = Progress(60, 60, Counter({"job": 2, "send": 3}), 1.0, 1.0)
    assert found.stalls(["job", "job", "send"]) == [
        "job: 2 operations in 60 s of faults, at least 3 expected"
    ]
