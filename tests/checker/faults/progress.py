"""Whether clients get on while faults are done to them, not only after: Redpanda's `min delta`.

A broker that answers nothing for as long as anything is wrong has no anomalies. So every kind of
client has to finish some operations within the rounds that had faults, and all of them together
are never silent for long. Of several brokers it is asked for the time in which clients can be
served: faults that overlap may leave no majority of them for a minute.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from tests.checker.history import Op

OK_PER_MINUTE: Final = 3.0
"""So many operations of each kind of client are the least under faults."""

SILENCE_S: Final = 30.0
"""For so long at most nothing at all succeeds."""

WORK: Final = frozenset({"send", "txn", "poll", "commit", "committed", "acknowledge"})
"""Operations whose success says that a client gets on."""

Window = tuple[int, int]
"""Begin and end in ns of the history's clock."""


class Progress(NamedTuple):
    """What was done in rounds with faults.

    Attributes:
        seconds: How long these rounds were.
        served_s: For how long of that clients could be served.
        ok: Operations that succeeded in them, by the kind of client.
        silence_s: The longest time without any, rounds without faults included.
        served_silence_s: The longest of times in which clients could be served, added up from one
            success to the next.
    """

    seconds: float
    served_s: float
    ok: Counter[str]
    silence_s: float
    served_silence_s: float

    def stalls(self, kinds: Iterable[str]) -> list[str]:
        """What went on too slowly."""
        least = int(OK_PER_MINUTE * self.served_s / 60)
        found = [
            f"{kind}: {self.ok[kind]} operations in {self.served_s:.0f} s of faults, "
            f"at least {least} expected"
            for kind in sorted(set(kinds))
            if self.ok[kind] < least
        ]
        if self.served_silence_s > SILENCE_S:
            found.append(f"nothing succeeded for {self.served_silence_s:.0f} s")
        return found

    def text(self) -> str:
        """For people."""
        done = ", ".join(f"{kind} {count}" for kind, count in sorted(self.ok.items()))
        return (
            f"ok within {self.seconds:.0f} s of faults: {done or 'nothing'}; "
            f"longest silence {self.silence_s:.1f} s; clients could be served for "
            f"{self.served_s:.0f} s of it, longest silence then {self.served_silence_s:.1f} s"
        )


def kind_of(proc: str) -> str:
    """The kind of client a process is: `nextjob1.3` is the third in slot 1 of `nextjob`."""
    return proc.rpartition(".")[0].rstrip("0123456789")


def progress_of(
    ops: Iterable[Op],
    faults: Sequence[Window],
    run: Window,
    served: Sequence[Window] | None = None,
) -> Progress:
    """Count what succeeded.

    Args:
        ops: Of all clients.
        faults: Rounds that had some; in order, without overlaps, as those below.
        run: From the first of them to the last.
        served: In which clients could be served; None: in all of the run.
    """
    able = [run] if served is None else served
    ok: Counter[str] = Counter()
    done = sorted(
        (op.completed_ns, op.proc)
        for op in ops
        if op.outcome == "ok" and op.f in WORK and op.completed_ns is not None
    )
    place, last, silence, served_silence = 0, run[0], 0, 0
    for at, proc in done:
        if not run[0] <= at <= run[1]:
            continue
        silence = max(silence, at - last)
        served_silence = max(served_silence, _within(able, (last, at)))
        last = at
        while place < len(faults) and faults[place][1] < at:
            place += 1
        if place < len(faults) and faults[place][0] <= at:
            ok[kind_of(proc)] += 1
    silence = max(silence, run[1] - last)
    served_silence = max(served_silence, _within(able, (last, run[1])))
    seconds = sum(end - begin for begin, end in faults) / 1e9
    served_s = sum(_within(able, window) for window in faults) / 1e9
    return Progress(seconds, served_s, ok, silence / 1e9, served_silence / 1e9)


def _within(windows: Iterable[Window], whole: Window) -> int:
    """How much of `whole` lies in windows."""
    return sum(max(0, min(end, whole[1]) - max(begin, whole[0])) for begin, end in windows)
