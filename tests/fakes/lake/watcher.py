"""A reader that checks a table in S3 all the time, with the library of its kind.

    a row is there twice        (partition, offset) of all files that are the table
    a row was there and is not
    a row is another one        than it was before; the test compares with the log at the end

A look that fails while the store is away, or is killed in its middle, is none. Files are read once:
nobody may change one that is part of a table; every so often the library reads the whole table.
"""

import threading
from collections.abc import Sequence
from typing import Any

import pyarrow.parquet as pq

from pipeline.lake.app.locations import open_catalog, open_table_store
from pipeline.lake.settings.config import JobConfig, parse_job
from pipeline.lake.sinks.delta_store import storage_options
from pipeline.lake.sinks.parquet import committed_files
from tests.fakes.lake.world import Row, World

WHOLE_EVERY = 10
"""Looks."""

COLUMNS = ["partition", "offset", "id"]


class TableReader:
    """The table of a job: its files, and all of it."""

    def __init__(self, config: JobConfig, *, quarantine: bool = False) -> None:
        self._config = config
        self._columns = ["partition", "offset"] if quarantine else COLUMNS
        self._suffix = "_quarantine" if quarantine else ""
        self._read: dict[str, list[Row]] = {}

    def look(self, *, whole: bool = False) -> list[Row] | None:
        """Rows, in no order; None: there is no table yet."""
        kind = self._config.sink.type
        if kind == "delta":
            return self._delta(whole=whole)
        if kind == "iceberg":
            return self._iceberg(whole=whole)
        store = open_table_store(self._config.sink.table + self._suffix, self._config.sink_store)
        return self._of(store, [file.key for file in committed_files(store)])

    def folder(self) -> list[Row]:
        """Of a Parquet table as those see it who list its folder."""
        store = open_table_store(self._config.sink.table + self._suffix, self._config.sink_store)
        return self._of(store, [f.key for f in store.list("") if not f.key.startswith("_")])

    def _of(self, store: Any, keys: Sequence[str]) -> list[Row]:
        import pyarrow as pa

        rows: list[Row] = []
        for key in keys:
            if key not in self._read:
                data = store.get(key)
                assert data is not None, f"{key} is of the table, and is not there"
                self._read[key] = _rows(
                    pq.read_table(pa.BufferReader(data), columns=self._columns, partitioning=None)
                )
            rows += self._read[key]
        return rows

    def _delta(self, *, whole: bool) -> list[Row] | None:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        location = self._config.sink.table + self._suffix
        options = storage_options(location, self._config.sink_store)
        # Its own patience is minutes.
        quick = {**options, "max_retries": "1", "retry_timeout": "5s", "timeout": "10s"}
        try:
            table = DeltaTable(location, storage_options=quick)
        except TableNotFoundError:
            return None
        if whole:
            return _rows(table.to_pyarrow_table(columns=self._columns))
        store = open_table_store(location, self._config.sink_store)
        return self._of(store, [uri.removeprefix(f"{location}/") for uri in table.file_uris()])

    def _iceberg(self, *, whole: bool) -> list[Row] | None:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            table = open_catalog(self._config).load_table(self._config.sink.table + self._suffix)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None
        if whole:
            return _rows(table.scan(selected_fields=tuple(self._columns)).to_arrow())
        location = table.location()
        store = open_table_store(location, self._config.sink_store)
        files = [task.file.file_path for task in table.scan().plan_files()]
        return self._of(store, [path.removeprefix(f"{location}/") for path in files])


def _rows(table: Any) -> list[Row]:
    columns = table.to_pydict()
    if "id" not in columns:
        columns["id"] = [-1] * table.num_rows
    return [Row(*one) for one in zip(*(columns[name] for name in COLUMNS), strict=True)]


def _is_of_a_lock(error: BaseException | None) -> bool:
    """Whether a catalog in SQLite was locked by who commits: the cause of the table's error."""
    while error is not None:
        if "locked" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


class Watcher:
    """A thread; `problems` are moments at which the table was wrong."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._config = parse_job(world.job.read_text())
        self._reader = TableReader(self._config)
        self._known: dict[tuple[int, int], int] = {}
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.looks = self.whole_looks = self.missed = 0
        self.problems: list[str] = []

    @property
    def rows(self) -> int:
        """Seen so far."""
        return len(self._known)

    def __enter__(self) -> "Watcher":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopped.wait(0.1) and len(self.problems) < 10:
            disturbed = self._world.disturbed
            whole = self.looks % WHOLE_EVERY == WHOLE_EVERY - 1
            try:
                rows = self._reader.look(whole=whole)
                if self._config.sink.type == "parquet":
                    self._check_once(self._reader.folder(), "the folder")
            except Exception as error:  # noqa: BLE001 -- whatever a reader met, the test tells
                if (
                    self._world.is_away
                    or disturbed != self._world.disturbed
                    or _is_of_a_lock(error)
                ):
                    self.missed += 1
                else:
                    self.problems.append(f"a reader met {error!r}")
                continue
            if rows is not None:
                self.looks += 1
                self.whole_looks += whole
                self.check(rows)

    def check(self, rows: Sequence[Row]) -> None:
        """What was read now against what was read before."""
        found = self._check_once(rows, "the table")
        if missing := self._known.keys() - found.keys():
            self.problems.append(f"{len(missing)} rows are gone, such as {min(missing)}")
        for at, number in found.items():
            if self._known.setdefault(at, number) != number:
                self.problems.append(f"{at} was {self._known[at]} and is {number}")

    def _check_once(self, rows: Sequence[Row], where: str) -> dict[tuple[int, int], int]:
        found = {(row.partition, row.offset): row.id for row in rows}
        if len(found) != len(rows):
            self.problems.append(f"{where} has {len(rows) - len(found)} rows twice")
        return found
