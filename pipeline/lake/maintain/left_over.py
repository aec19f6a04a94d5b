"""Removal of files that a table does not need any more: found, checked, removed.

    1  view      the table's offsets and files
    2  list      all that lies below it, with the store's times
    3  view      what its states have (`History.reach`), and which plans are stored

    removed      what only ended states had, at any age
                 data files of ours, metadata, plans and scratch files that are unreferenced
                 (`Unfinished`), older than `orphans_older_than` by the store's own clock
    left alone   whatever has another name

A file that is committed meanwhile is in the second view or young. If anything of the
table cannot be read, or a file that it has is not there, nothing is removed.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, NamedTuple

from pipeline.lake.batch.batch_plan import FOLDER
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import ForeignTableError, LakeError, NothingRemovedError
from pipeline.lake.files.data_file import incarnation_of
from pipeline.lake.maintain.history import History, Reach, Times
from pipeline.lake.maintain.unfinished import StoredPlan, Unfinished, stored_plans
from pipeline.lake.sinks.base import Sink
from pipeline.lake.stores.table_store import StoredFile

REMOVED_AT_ONCE: Final = 1_000

OTHERS_MAX: Final = 20
"""Names shown of files that are left alone."""


class Ages(NamedTuple):
    """See `MaintainConfig`."""

    keep_ms: int
    orphans_ms: int


class LeftOver(NamedTuple):
    """Files that were found.

    Attributes:
        expired: Only ended states had them.
        orphans: Unreferenced: data, metadata, scratch files.
        plans: Stored for batches that the table has passed.
        others: Names of files that no job may remove, the first ones.
    """

    expired: tuple[StoredFile, ...]
    orphans: tuple[StoredFile, ...]
    plans: tuple[StoredFile, ...]
    others: tuple[str, ...]

    @property
    def all(self) -> tuple[StoredFile, ...]:
        """All that goes."""
        return self.expired + self.orphans + self.plans


def find_left_over(
    sink: Sink,
    history: History,
    progress: Progress,
    planner: Sink,
    times: Times,
    ages: Ages,
) -> LeftOver:
    """Find what can go; removes nothing.

    Args:
        sink: The table, or a quarantine.
        history: Of it.
        progress: Of the table that has the plans, read before this is called.
        planner: The table that has the plans: a quarantine's are its table's.
        times: Now.
        ages: What is old.

    Raises:
        NothingRemovedError: Not everything is known that has to be.
    """
    with unknown(sink):
        before = frozenset(sink.keys(sink.view()))
        listed = _listed(sink, before, times.store_ms - min(ages))
        view = sink.view()
        reach = history.reach(view, times, ages.keep_ms)
        keys = frozenset(sink.keys(view))
        for key in sorted(before & keys & listed.missing):
            if "://" not in key and not key.startswith("/") and sink.store.size(key) is None:
                raise ForeignTableError(f"{key} is of the table, and is not there")
        plans = stored_plans(planner.store)
    unfinished = Unfinished(progress, keys | reach.kept, plans)
    return _sorted_out(listed.files, history, reach, unfinished, plans, times, ages)


@contextmanager
def unknown(sink: Sink) -> Iterator[None]:
    """Turns errors within into NothingRemovedError."""
    try:
        yield
    except LakeError as error:
        raise NothingRemovedError(
            f"{sink.name}: nothing is removed, as it is not known what the table has: {error}"
        ) from error


class _Listed(NamedTuple):
    files: tuple[StoredFile, ...]
    missing: frozenset[str]


def _listed(sink: Sink, keys: frozenset[str], before_ms: int) -> _Listed:
    """Files that were last changed before a time, and keys that were not met."""
    missing = set(keys)
    files = []
    for file in sink.store.list(""):
        missing.discard(file.key)
        if file.modified_ms < before_ms:
            files.append(file)
    files.extend(file for file in sink.store.scratch_files() if file.modified_ms < before_ms)
    return _Listed(tuple(files), frozenset(missing))


def _sorted_out(
    files: Iterable[StoredFile],
    history: History,
    reach: Reach,
    unfinished: Unfinished,
    plans: Sequence[StoredPlan],
    times: Times,
    ages: Ages,
) -> LeftOver:
    # By their last name, too: an address written in another way means the same file.
    kept_names = frozenset(key.rpartition("/")[2] for key in reach.kept)
    passed = {one.file.key for one in plans if unfinished.has_passed(one.plan)}
    expired, orphans, old_plans, others = [], [], [], []
    for file in files:
        name = file.key.rpartition("/")[2]
        if file.key in reach.kept or name in kept_names:
            continue
        if file.key in reach.expired:
            expired.append(file)
            continue
        is_old = file.modified_ms < times.store_ms - ages.orphans_ms
        if file.key.startswith(FOLDER):
            if is_old and file.key in passed:
                old_plans.append(file)
        elif incarnation_of(file.key) is not None:
            if is_old and unfinished.is_left_over(file.key):
                orphans.append(file)
        elif history.is_metadata(file.key) or name.startswith("."):
            if is_old:
                orphans.append(file)
        elif not file.key.startswith("_") and not file.key.startswith("metadata/"):
            others.append(file.key)
    return LeftOver(tuple(expired), tuple(orphans), tuple(old_plans), tuple(others[:OTHERS_MAX]))


def remove(sink: Sink, files: Sequence[StoredFile]) -> None:
    """Remove them, some at a time."""
    for some in _chunks([file.key for file in files]):
        sink.store.delete(some)


def _chunks(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for begin in range(0, len(keys), REMOVED_AT_ONCE):
        yield keys[begin : begin + REMOVED_AT_ONCE]
