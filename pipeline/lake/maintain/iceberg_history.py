"""States of an Iceberg table: snapshots, ended by a commit that removes them from the metadata.

    trim     snapshots older than `keep_ms` end, but for those that a branch or a tag is at; small
             manifests are put together; old metadata files are removed by later commits
    expired  files that only ended snapshots had: their data files, manifests and manifest lists
    reach    of all snapshots that are left: manifest lists, manifests, data and delete files,
             statistics, and the metadata files that the current one names

The time of a snapshot is that of its writer or of its manifest list in the store, whichever is
later. The job's offsets are in every snapshot it makes and in every one that is made here, so the
current one, which never ends, has them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, Final

from pipeline.lake.batch.progress import KEY, encode_progress
from pipeline.lake.errors import CommitConflictError, ForeignTableError
from pipeline.lake.maintain.history import Reach, Times
from pipeline.lake.sinks.base import TableView
from pipeline.lake.sinks.iceberg import IcebergSink, IcebergState
from pipeline.lake.sinks.library_errors import iceberg_refusals

CONFLICTS_MAX: Final = 20

READERS: Final = 8
"""Manifests that are read at once."""

MANIFESTS_MAX: Final = 100
"""Of a snapshot, from which on they are put together."""

PROPERTIES: Final = {
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "100",
}
"""Set where the table says nothing of it."""

_SCHEME: Final = re.compile(r"^(?:s3[an]?://|file:(?://)?)")


def _plain(path: str) -> str:
    """Engines write one address in several ways."""
    return _SCHEME.sub("", path)


class IcebergHistory:
    """`History` of an Iceberg table; see the module."""

    def __init__(self, sink: IcebergSink) -> None:
        """Nothing is asked yet."""
        self._sink = sink
        self._ended: frozenset[str] = frozenset()
        self._entries: dict[str, frozenset[str]] = {}

    def _table(self, view: TableView) -> Any:
        assert isinstance(view.state, IcebergState)
        return view.state.table

    def states(self) -> int:
        """Snapshots."""
        return len(self._table(self._sink.view()).metadata.snapshots)

    # -- trim ------------------------------------------------------------------------------------

    def trim(self, times: Times, keep_ms: int, *, dry_run: bool) -> int:
        """Expire, after what the snapshots had has been noted."""
        view = self._sink.view()
        table = self._table(view)
        old = self._old(table, times.now_ms - keep_ms)
        if dry_run:
            return len(old)
        self._put_together(view)
        if old:
            ending = [one for one in table.metadata.snapshots if one.snapshot_id in old]
            self._ended = frozenset(self._files(table, ending))
            self._expire(old)
        return len(old)

    def _old(self, table: Any, before_ms: int) -> set[int]:
        written = {file.key: file.modified_ms for file in self._sink.store.list("metadata/")}
        base = f"{_plain(str(table.location())).rstrip('/')}/"
        held = {ref.snapshot_id for ref in table.metadata.refs.values()}
        old = set()
        for one in table.metadata.snapshots:
            key = _plain(str(one.manifest_list)).removeprefix(base)
            if one.snapshot_id not in held and (
                max(one.timestamp_ms, written.get(key, 0)) < before_ms
            ):
                old.add(int(one.snapshot_id))
        return old

    def _expire(self, old: set[int]) -> None:
        for _ in range(CONFLICTS_MAX):
            table = self._table(self._sink.view())
            there = {one.snapshot_id for one in table.metadata.snapshots}
            if not (left := sorted(old & there)):
                return
            with suppress(CommitConflictError), iceberg_refusals(self._sink.name):
                table.maintenance.expire_snapshots().by_ids(left).commit()
                return
        raise CommitConflictError(f"{self._sink.name} is changed all the time by another writer")

    def _put_together(self, view: TableView) -> None:
        """Properties, and a snapshot with fewer manifests if there are many; a conflict: later."""
        from pipeline.lake.sinks.iceberg_replace import replace_manifests

        table = self._table(view)
        assert view.progress is not None
        properties = {n: v for n, v in PROPERTIES.items() if n not in table.properties}
        snapshot = table.current_snapshot()
        with suppress(CommitConflictError), iceberg_refusals(self._sink.name):
            many = snapshot is not None and len(snapshot.manifests(table.io)) >= MANIFESTS_MAX
            if not properties and not many:
                return
            with table.transaction() as transaction:
                if properties:
                    transaction.set_properties(properties)
                if many:
                    text = encode_progress(view.progress)
                    with replace_manifests(transaction, {KEY: text}):
                        pass

    # -- reach -----------------------------------------------------------------------------------

    def reach(self, view: TableView, times: Times, keep_ms: int) -> Reach:
        """Of all snapshots that are left."""
        table = self._table(view)
        kept = frozenset(self._files(table, table.metadata.snapshots))
        kept |= frozenset(self._keys(table, _metadata_files(table)))
        return Reach(kept, self._ended - kept)

    def _files(self, table: Any, snapshots: Iterable[Any]) -> Iterator[str]:
        """Keys of all that the snapshots have; each manifest is read once."""
        lists = [str(one.manifest_list) for one in snapshots]
        with ThreadPoolExecutor(READERS) as threads:
            manifests: dict[str, Any] = {}
            for found in threads.map(lambda one: self._manifests(table, one), snapshots):
                manifests.update(found)
            new = [one for path, one in manifests.items() if path not in self._entries]
            for one, paths in zip(
                new, threads.map(lambda one: self._paths(table, one), new), strict=True
            ):
                self._entries[str(one.manifest_path)] = paths
        yield from self._keys(table, lists)
        yield from self._keys(table, manifests)
        for path in manifests:
            yield from self._entries[path]

    def _manifests(self, table: Any, snapshot: Any) -> Mapping[str, Any]:
        try:
            return {str(one.manifest_path): one for one in snapshot.manifests(table.io)}
        except Exception as error:
            # Whatever avro, the library or the store make of a file that is cut or gone.
            raise ForeignTableError(
                f"{self._sink.name}: the manifest list {snapshot.manifest_list} cannot be read: "
                f"{error}"
            ) from error

    def _paths(self, table: Any, manifest: Any) -> frozenset[str]:
        try:
            entries = manifest.fetch_manifest_entry(table.io, discard_deleted=True)
            return frozenset(
                self._keys(table, (str(entry.data_file.file_path) for entry in entries))
            )
        except Exception as error:
            raise ForeignTableError(
                f"{self._sink.name}: the manifest {manifest.manifest_path} cannot be read: {error}"
            ) from error

    @staticmethod
    def _keys(table: Any, paths: Iterable[str]) -> Iterator[str]:
        base = f"{_plain(str(table.location())).rstrip('/')}/"
        for path in paths:
            yield _plain(path).removeprefix(base)

    def fold(self, view: TableView, times: Times, keep_ms: int) -> int:
        """Done by `trim`, and by the removal of left-over files."""
        return 0

    def is_metadata(self, key: str) -> bool:
        """Manifests, their lists, and metadata files."""
        return key.startswith("metadata/") and key.endswith((".avro", ".metadata.json"))


def _metadata_files(table: Any) -> Iterator[str]:
    """Paths of what is not of one snapshot alone."""
    yield str(table.metadata_location)
    for entry in table.metadata.metadata_log:
        yield str(entry.metadata_file)
    for one in (*table.metadata.statistics, *table.metadata.partition_statistics):
        yield str(one.statistics_path)
