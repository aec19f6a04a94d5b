"""Search for the commit of a Delta table that has its offsets, also after a RESTORE.

    version    4  commit 12         <- recorded in a table that was never restored
    version    5  RESTORE to 3      the table is what it was at 3
    version    3  commit 11         <- recorded now: rows of commit 12 are not in the table

RESTORE takes files, columns and properties back, and application transactions not: by those alone
a restored table would seem to have rows that it has no more. So the newest commit of a job counts
that is not behind a restore, by the metadata that each of them has. Where the log was cleaned and
holds none, transactions do, unless there is a restore.

Commits are read from the table's store: deltalake's `history` waits for a store with Python's lock
held, and a slow one would stop the whole process, signals included.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from pipeline.lake.batch.progress import KEY
from pipeline.lake.errors import ForeignTableError
from pipeline.lake.stores.table_store import TableStore

RESTORE: Final = "RESTORE"

LIMITS: Final = (1, 20, 400, None)
"""Commits that are read at first, and then, until one has the offsets."""


class RecordedOffsets(NamedTuple):
    """The offsets that a table's commits record.

    Attributes:
        text: The progress of the one that counts; None: none that is left has any.
        restored_to: The version that the newest restore before it went back to; -1: there is none.
    """

    text: str | None
    restored_to: int


def recorded_offsets(
    table: Any, store: TableStore, at_version: Callable[[int], Any]
) -> RecordedOffsets:
    """Of the version that the table is at.

    Args:
        table: Of deltalake.
        store: Of its files.
        at_version: Opens the table as it was at a version.

    Raises:
        ForeignTableError: It was restored to a version whose offsets are recorded nowhere any more.
        TableUnavailableError: The store does not answer.
    """
    restored_to = -1
    is_whole = False
    for limit in LIMITS:
        entries = commits(store, int(table.version()), limit)
        restored_to = -1
        for entry, target in _counting(entries, table, store, at_version):
            if KEY in entry:
                return RecordedOffsets(str(entry[KEY]), restored_to)
            if target is not None and restored_to < 0:
                restored_to = target
        is_whole = bool(entries) and int(entries[-1]["version"]) == 0
        if is_whole or limit is None or len(entries) < limit:
            break
    if restored_to >= 0 and not is_whole:
        raise ForeignTableError(
            f"{table.table_uri} was restored to version {restored_to}, and the log has no commit "
            "of a job from before that any more, so its offsets are unknown; RESTORE it to one "
            f"of the versions whose history has {KEY}"
        )
    return RecordedOffsets(None, restored_to)


def commits(store: TableStore, newest: int, limit: int | None) -> Sequence[Mapping[str, Any]]:
    """`commitInfo` of commits, from a version downwards, with the `version`.

    Args:
        store: Of the table's files.
        newest: The version to begin with.
        limit: Commits at most; None: as far as the log goes back.
    """
    found: list[Mapping[str, Any]] = []
    for version in range(newest, -1, -1):
        if limit is not None and len(found) == limit:
            break
        data = store.get(f"_delta_log/{version:020}.json")
        if data is None:
            break
        actions = map(json.loads, filter(None, data.splitlines()))
        info: Mapping[str, Any] = next(
            (one["commitInfo"] for one in actions if "commitInfo" in one), {}
        )
        found.append({**info, "version": version})
    return found


def _counting(
    entries: Sequence[Mapping[str, Any]],
    table: Any,
    store: TableStore,
    at_version: Callable[[int], Any],
) -> Iterator[tuple[Mapping[str, Any], int | None]]:
    """Commits that made the table what it is, the newest first; with where a restore went."""
    newest = int(table.version())
    for entry in entries:
        if int(entry["version"]) > newest:
            continue
        target = None
        if entry.get("operation") == RESTORE:
            target = newest = _target(entry, table, store, at_version)
        yield entry, target


def _target(
    entry: Mapping[str, Any], table: Any, store: TableStore, at_version: Callable[[int], Any]
) -> int:
    """The version that a restore went back to: named, or of its time the one with its files."""
    number = int(entry["version"])
    named = entry.get("operationParameters", {}).get("version")
    if named not in (None, "", "null"):
        return int(named)
    files = set(at_version(number).file_uris())
    for older in commits(store, number - 1, None):
        candidate = int(older["version"])
        if candidate < number and set(at_version(candidate).file_uris()) == files:
            return candidate
    raise ForeignTableError(
        f"{table.table_uri} was restored at version {number} to a time that the log does "
        "not cover any more, so its offsets are unknown; RESTORE it to one of the versions that "
        "its history has"
    )
