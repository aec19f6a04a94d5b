"""The plan of a batch: which offsets, cut into tasks; stored beside the table before the work.

    <table>/_varve/plans/<batch, 20 digits>-<digest>.json

    {"version": 1, "fingerprint": "...", "base": {progress},
     "tasks": [[partition, start, end], ...]}

An attempt that finds the table at `base`, with the same fingerprint, works the plan that is
there, so a repeated batch has the same tasks, and its files the same names and rows. Of two jobs
at once one stores its plan, and both follow it. With another fingerprint (other settings, another
version) the tasks stay and the files get other names. Where rows that are lost may be left out
(`fail_on_data_loss: false`) every attempt has a fingerprint of its own: it may find fewer rows.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from pipeline.lake.batch.progress import Progress, decode_progress, encode_progress
from pipeline.lake.errors import CommitConflictError, ForeignTableError
from pipeline.lake.stores.table_store import TableStore

VERSION: Final = 1

FOLDER: Final = "_varve/plans/"

TASKS_MAX: Final = 10_000
"""Of one plan: bounds the driver's memory whatever the settings say."""


class TaskRange(NamedTuple):
    """Offsets of one partition that one task writes; exclusive end."""

    partition: int
    start: int
    end: int


class BatchPlan(NamedTuple):
    """See the module. `base` is the progress of the table that it continues."""

    fingerprint: str
    base: Progress
    tasks: tuple[TaskRange, ...]

    def ends(self) -> dict[int, int]:
        """Next offset of each partition of the plan, once it is committed."""
        ends: dict[int, int] = {}
        for task in self.tasks:
            ends[task.partition] = max(task.end, ends.get(task.partition, 0))
        return ends

    def starts(self) -> dict[int, int]:
        """The first offset of each partition of the plan."""
        starts: dict[int, int] = {}
        for task in self.tasks:
            starts[task.partition] = min(task.start, starts.get(task.partition, task.start))
        return starts

    def key(self) -> str:
        """Of its file."""
        return _key(self.fingerprint, self.base)


def fingerprint_of(facts: Mapping[str, str]) -> str:
    """8 hexadecimal digits of all that decides a file's bytes, except for its range."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:8]


def _batch_prefix(base: Progress) -> str:
    return f"{FOLDER}{base.batch + 1:020d}-"


def _key(fingerprint: str, base: Progress) -> str:
    digest = hashlib.sha256(f"{fingerprint} {encode_progress(base)}".encode()).hexdigest()
    return f"{_batch_prefix(base)}{digest[:16]}.json"


def encode_plan(plan: BatchPlan) -> bytes:
    """One JSON object."""
    return json.dumps(
        {
            "version": VERSION,
            "fingerprint": plan.fingerprint,
            "base": json.loads(encode_progress(plan.base)),
            "tasks": [list(task) for task in plan.tasks],
        }
    ).encode()


def decode_plan(data: bytes) -> BatchPlan:
    """Decode what `encode_plan` wrote.

    Raises:
        ForeignTableError: It is of another version, or damaged.
    """
    try:
        found = json.loads(data)
        if found["version"] != VERSION:
            raise ForeignTableError(
                f"a stored plan has version {found['version']}, this release knows {VERSION}"
            )
        tasks = tuple(TaskRange(*map(int, task)) for task in found["tasks"])
        if any(task.partition < 0 or not 0 <= task.start < task.end for task in tasks):
            raise ValueError("a task without offsets")
        return BatchPlan(
            str(found["fingerprint"]), decode_progress(json.dumps(found["base"])), tasks
        )
    except (ValueError, KeyError, TypeError) as error:
        raise ForeignTableError(f"a stored plan cannot be read: {error}") from error


class PlanShelf:
    """Plans of one table."""

    def __init__(self, store: TableStore) -> None:
        self._store = store

    def find(self, fingerprint: str, base: Progress) -> BatchPlan | None:
        """The plan to repeat, or one with its tasks under the new fingerprint; None: none yet."""
        stored = self._read(_key(fingerprint, base))
        if stored is not None:
            return stored
        for other in self._store.list(_batch_prefix(base)):
            plan = self._read(other.key)
            if plan is not None and plan.base == base:
                return self.put(plan._replace(fingerprint=fingerprint))
        return None

    def put(self, plan: BatchPlan) -> BatchPlan:
        """Store it, or find the one that an earlier attempt stored; the stored one counts."""
        key = plan.key()
        if self._store.put_if_absent(key, encode_plan(plan)):
            return plan
        stored = self._read(key)
        if stored is None:
            raise CommitConflictError(f"{key} is gone: another job has committed it")
        return stored

    def _read(self, key: str) -> BatchPlan | None:
        data = self._store.get(key)
        return None if data is None else decode_plan(data)

    def others(self, plan: BatchPlan) -> list[BatchPlan]:
        """Plans of the same batch under other fingerprints."""
        found = [self._read(file.key) for file in self._store.list(_batch_prefix(plan.base))]
        return [one for one in found if one is not None and one.fingerprint != plan.fingerprint]

    def ranges(self, base: Progress) -> frozenset[TaskRange]:
        """Tasks of all plans of the batch behind `base`."""
        plans = [self._read(file.key) for file in self._store.list(_batch_prefix(base))]
        return frozenset(
            task for one in plans if one is not None and one.base == base for task in one.tasks
        )

    def forget(self, base: Progress) -> None:
        """Remove all plans of the batch behind `base`, which is committed."""
        done = [file.key for file in self._store.list(_batch_prefix(base))]
        if done:
            self._store.delete(done)


class Span(NamedTuple):
    """Offsets of a log with their bytes, as far as they are known before anything is read.

    `newest_ms`: time of the newest record up to there; -1: unknown.
    """

    start: int
    end: int
    size: int
    newest_ms: int = -1


def choose_tasks(
    spans: Mapping[int, Sequence[Span]], *, max_bytes: int, task_bytes: int
) -> tuple[TaskRange, ...]:
    """The next tasks: at most `max_bytes` in all, about `task_bytes` each.

    Where there is more, each partition gets its share by bytes, so that none falls behind; one that
    has anything gets at least an offset. Spans are cut in proportion to offsets.

    Args:
        spans: Per partition what the table lacks, ascending, without offsets twice.
        max_bytes: Of the batch.
        task_bytes: Of a task.
    """
    total = sum(span.size for some in spans.values() for span in some)
    tasks: list[TaskRange] = []
    for partition, some in sorted(spans.items()):
        size = sum(span.size for span in some)
        share = size if total <= max_bytes else max_bytes * size // total
        tasks.extend(
            TaskRange(partition, start, end) for start, end in _cut(some, share, task_bytes)
        )
    return tuple(tasks[:TASKS_MAX])


def _cut(spans: Iterable[Span], budget: int, task_bytes: int) -> Iterator[tuple[int, int]]:
    """Ranges of about `task_bytes` until the budget is spent; at least one offset in all."""
    start = end = -1
    filled = spent = 0
    for span in spans:
        position = span.start
        if start >= 0 and position != end:
            # A gap: what is before it is its own task.
            yield start, end
            start, filled = -1, 0
        while position < span.end:
            task_room, room = task_bytes - filled, budget - spent
            taken = _taken(span, position, min(task_room, room))
            if taken == 0 and room <= task_room and end >= 0:
                if start >= 0:
                    yield start, end
                return
            if taken == 0 and start >= 0:
                yield start, end
                start, filled = -1, 0
                continue
            taken = max(1, taken)
            start = position if start < 0 else start
            size = _size(span, position, position + taken)
            position = end = position + taken
            filled += size
            spent += size
            if filled >= task_bytes:
                yield start, end
                start, filled = -1, 0
    if start >= 0:
        yield start, end


def _size(span: Span, start: int, end: int) -> int:
    """Bytes of a part of a span, as if all records were of one length; parts add up."""
    count = span.end - span.start
    return span.size * (end - span.start) // count - span.size * (start - span.start) // count


def _taken(span: Span, position: int, room: int) -> int:
    """How many offsets from `position` on have at most `room` bytes."""
    if _size(span, position, span.end) <= room:
        return span.end - position
    if room <= 0 or span.size == 0:
        return 0
    return min(span.end - position, room * (span.end - span.start) // span.size)
