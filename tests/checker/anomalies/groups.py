"""Anomalies of groups: committed offsets, and jobs that write one output for each input.

    group-offset-lost     the broker says less than was acknowledged before it was asked
    group-offset-aborted  the broker says what only a failed transaction has asked for
    group-offset-beyond   a committed offset above the last stable offset at the end
    output-duplicate      an input has two outputs
    output-missing        an input below the committed offset has none
    output-without-input  an output of something that is not there
    hanging-transaction   the last stable offset never reaches the end of the log

Members of the workload go on from what is committed, so what a group commits never goes back,
whoever commits: not within a generation and not between them.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator

from tests.checker.anomalies.anomaly import Anomaly
from tests.checker.anomalies.versions import Versions
from tests.checker.history import Op

Place = tuple[str, str]
"""Group and key."""


def committed_offsets(versions: Versions) -> Iterator[Anomaly]:
    """What the broker said is committed, against what it had acknowledged and been asked."""
    acknowledged: dict[Place, list[tuple[int, int]]] = {}
    asked: dict[Place, set[int]] = {}
    refused: dict[Place, set[int]] = {}
    questions: list[Op] = []
    for op in versions.ops:
        if op.f == "committed":
            if op.outcome == "ok":
                questions.append(op)
            continue
        for key, offset in op.value.get("offsets", {}).items():
            place = (op.value["group"], key)
            (refused if op.outcome == "fail" else asked).setdefault(place, set()).add(offset)
            if op.outcome == "ok" and op.completed_ns is not None:
                acknowledged.setdefault(place, []).append((op.completed_ns, offset))
    best = {place: _running_maximum(sorted(pairs)) for place, pairs in acknowledged.items()}
    said: dict[Place, tuple[list[int], list[int]]] = {}
    for op in questions:
        for key, offset in op.value["offsets"].items():
            place = (op.value["group"], key)
            least = max(
                _before(best.get(place), op.invoked_ns), _before(said.get(place), op.invoked_ns)
            )
            if offset < least:
                yield Anomaly(
                    "group-offset-lost", f"{op.name}: {place} is {offset}, was {least} before"
                )
            if offset >= 0 and offset not in asked.get(place, ()):
                kind = "aborted" if offset in refused.get(place, ()) else "unknown to anybody"
                yield Anomaly("group-offset-aborted", f"{op.name}: {place} is {offset}, {kind}")
        for key, offset in op.value["offsets"].items():
            times, offsets = said.setdefault((op.value["group"], key), ([], []))
            # Answers in the order of their questions: later ones may overlap, which `_before` of
            # the completion time allows for.
            if op.completed_ns is not None and (not times or op.completed_ns >= times[-1]):
                times.append(op.completed_ns)
                offsets.append(max(offset, offsets[-1] if offsets else -1))


def _running_maximum(pairs: list[tuple[int, int]]) -> tuple[list[int], list[int]]:
    times, offsets, highest = [], [], -1
    for time_ns, offset in pairs:
        highest = max(highest, offset)
        times.append(time_ns)
        offsets.append(highest)
    return times, offsets


def _before(steps: tuple[list[int], list[int]] | None, time_ns: int) -> int:
    """The highest offset known before a time."""
    if steps is None:
        return -1
    place = bisect_left(steps[0], time_ns)
    return steps[1][place - 1] if place else -1


def ends(versions: Versions) -> Iterator[Anomaly]:
    """Committed offsets and transactions against the ends of the logs."""
    stable: dict[str, int] = {}
    for op in versions.ops:
        if op.f == "ends" and op.outcome == "ok":
            for key, (last_stable, log_end) in op.value["keys"].items():
                stable[key] = last_stable
                if last_stable < log_end:
                    yield Anomaly(
                        "hanging-transaction",
                        f"{key}: last stable offset {last_stable}, log end {log_end}",
                    )
    for op in versions.ops:
        if op.outcome != "fail":
            for key, offset in op.value.get("offsets", {}).items():
                if offset > stable.get(key, offset):
                    yield Anomaly(
                        "group-offset-beyond",
                        f"{op.name}: {key} committed {offset}, last stable offset {stable[key]}",
                    )


def outputs(versions: Versions) -> Iterator[Anomaly]:
    """Every input of a job has exactly one output; judged by final reads."""
    # Every member of a job says what the job is.
    jobs = {op.value["group"]: op for op in versions.ops if op.f == "pipeline"}
    for job in jobs.values():
        group, inputs = job.value["group"], job.value["inputs"]
        made: Counter[str] = Counter()
        for key in job.value["outputs"]:
            made.update(value.partition("|")[2] for value in versions.final.get(key, ()))
        done = _last_committed(versions, group)
        there: set[str] = set()
        for key in inputs:
            final = versions.final.get(key, set())
            there |= final
            for value, offset in versions.read.get(key, {}).items():
                if value in final and offset < done.get(key, 0) and not made[value]:
                    yield Anomaly("output-missing", f"{group}: {key}@{offset} {value}")
        for value, count in made.items():
            if count > 1:
                yield Anomaly("output-duplicate", f"{group}: {count} outputs of {value}")
            if value not in there:
                yield Anomaly("output-without-input", f"{group}: output of {value}")


def _last_committed(versions: Versions, group: str) -> dict[str, int]:
    done: dict[str, int] = {}
    for op in versions.ops:
        if op.f == "committed" and op.outcome == "ok" and op.value["group"] == group:
            for key, offset in op.value["offsets"].items():
                done[key] = max(offset, done.get(key, -1))
    return done
