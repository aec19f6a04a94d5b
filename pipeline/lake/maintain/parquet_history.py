"""States of a Parquet table: its commits, as long as what they removed is still there.

A query that listed the table's files reads them for a while; a file that a commit removed stays
for `keep_ms` after it. The time of a commit is that of its object in the store.

    expired  files that commits older than `keep_ms` removed
    fold     a checkpoint of the table as it is, then commit objects go that are older than
             `keep_ms` and that no checkpoint needs

Which commit removed a file is known from commit objects alone, so they go last.
"""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from pipeline.lake.errors import ForeignTableError
from pipeline.lake.maintain.history import Reach, Times
from pipeline.lake.sinks.base import TableView
from pipeline.lake.sinks.parquet import (
    CHECKPOINTS,
    COMMITS,
    ParquetSink,
    ParquetState,
    commit_number,
)
from pipeline.lake.stores.table_store import StoredFile

READERS: Final = 8
"""Commit objects that are read at once."""


class ParquetHistory:
    """`History` of a Parquet table; see the module."""

    def __init__(self, sink: ParquetSink) -> None:
        """Nothing is asked yet."""
        self._sink = sink

    def states(self) -> int:
        """Commit objects."""
        return sum(1 for _ in self._sink.store.list(COMMITS))

    def trim(self, times: Times, keep_ms: int, *, dry_run: bool) -> int:
        """Number of expired commits; they expire without any change."""
        return sum(1 for _ in self._old(times, keep_ms))

    def _old(self, times: Times, keep_ms: int) -> Iterator[StoredFile]:
        for file in self._sink.store.list(COMMITS):
            if file.modified_ms < times.store_ms - keep_ms:
                yield file

    def reach(self, view: TableView, times: Times, keep_ms: int) -> Reach:
        """The table's files, and what its commits have removed."""
        assert isinstance(view.state, ParquetState)
        commits = list(self._sink.store.list(COMMITS))
        with ThreadPoolExecutor(READERS) as threads:
            removed = list(threads.map(self._removed, commits))
        young: set[str] = set()
        old: set[str] = set()
        for commit, keys in zip(commits, removed, strict=True):
            is_old = commit.modified_ms < times.store_ms - keep_ms
            (old if is_old else young).update(keys)
        kept = frozenset(view.state.files) | young
        return Reach(kept, frozenset(old) - kept)

    def _removed(self, commit: StoredFile) -> list[str]:
        data = self._sink.store.get(commit.key)
        if data is None:
            # Another one that keeps the table has folded it: what it removed is gone.
            return []
        try:
            return [str(key) for key in json.loads(data)["remove"]]
        except (ValueError, KeyError, TypeError) as error:
            raise ForeignTableError(
                f"{self._sink.store.uri}: {commit.key} is damaged: {error}"
            ) from error

    def fold(self, view: TableView, times: Times, keep_ms: int) -> int:
        """Checkpoint, then remove; the newest checkpoint but one is what old readers begin at."""
        self._sink.checkpoint(view)
        checkpoints = [commit_number(file.key) for file in self._sink.store.list(CHECKPOINTS)]
        needed = min(checkpoints, default=-1)
        done = [f.key for f in self._old(times, keep_ms) if commit_number(f.key) <= needed]
        if done:
            self._sink.store.delete(done)
        return len(done)

    def is_metadata(self, key: str) -> bool:
        """None: what is under `_varve/` is removed by number, not by age."""
        return False
