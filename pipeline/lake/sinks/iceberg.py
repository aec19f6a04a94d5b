"""An Iceberg table through pyiceberg: offsets are properties of the snapshot that adds the rows.

    snapshot summary   varve.progress: the progress after it
    table property     varve.progress: that of the newest commit, with varve.sequence, the sequence
                       number of its snapshot; for tables whose older snapshots were expired
                       commit.retry.num-retries = 0
                       schema.name-mapping.default: files have no field ids, columns go by name

The offsets are those of the newest snapshot, from the current one back, that has any: after a
rollback they are those that the rolled back table has. Where expiry has removed that snapshot, the
table's property counts, unless its sequence number is above the current snapshot's: then the table
was rolled back behind it, and its offsets are unknown.

Without retries a commit is refused when the branch is not where it was viewed; pyiceberg would
otherwise put the same files behind another job's.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, NamedTuple

import pyarrow as pa

from pipeline.lake.batch.progress import KEY, Progress, decode_progress, encode_progress
from pipeline.lake.errors import CommitConflictError, ForeignTableError, TableUnavailableError
from pipeline.lake.files.data_file import DataFile
from pipeline.lake.settings.config import PartitionField
from pipeline.lake.sinks.base import TableFile, TableView
from pipeline.lake.sinks.continuity import Continuity, check_offsets, refuse_leftovers
from pipeline.lake.sinks.iceberg_values import (
    OFFSET,
    TIMESTAMP,
    arrow_schema,
    lower_bound,
    manifest_entry,
    why_sealed,
)
from pipeline.lake.sinks.library_errors import iceberg_refusals
from pipeline.lake.stores.table_store import TableStore
from storage.environment.clock import Clock, SystemClock

SEQUENCE: Final = "varve.sequence"

BEHIND_MAX_MS: Final = 60_000
"""That a commit may be dated before the one before it: Iceberg's readers in Java take no more."""

PICKED: Final = "source-snapshot-id"
"""In the summary of a snapshot that Iceberg has cherry-picked from another one."""

PROPERTIES: Final = {"commit.retry.num-retries": "0", "format-version": "2"}


class IcebergState(NamedTuple):
    """A table as the library loaded it, and its snapshot then; None: it had none."""

    table: Any
    snapshot_id: int | None


def _head(table: Any) -> int | None:
    snapshot = table.current_snapshot()
    return None if snapshot is None else int(snapshot.snapshot_id)


class IcebergSink:
    """`Sink` of an Iceberg table; see the module."""

    keeps_partition_columns = True
    folder = "data/"

    def __init__(
        self,
        open_catalog: Callable[[], Any],
        identifier: str,
        job: str,
        open_store: Callable[[str], TableStore],
        partition_by: Sequence[PartitionField] = (),
        clock: Clock | None = None,
    ) -> None:
        """Nothing is asked of the catalog yet.

        Args:
            open_catalog: Opens one of pyiceberg's; again after a failure, since credentials and
                tokens may be others then.
            identifier: namespace.table.
            job: Name of the job.
            open_store: Opens the store at the table's location.
            partition_by: Of a table that is made.
            clock: This machine's, by which the library dates commits.
        """
        self.name = f"iceberg:{identifier}"
        self._open_catalog = open_catalog
        self._known_catalog: Any = None
        self._identifier = identifier
        self._job = job
        self._open_store = open_store
        self._partition_by = tuple(partition_by)
        self._clock = SystemClock() if clock is None else clock
        self._store: TableStore | None = None
        self._continuity = Continuity(self.name)

    @property
    def _catalog(self) -> Any:
        if self._known_catalog is None:
            self._known_catalog = self._open_catalog()
        return self._known_catalog

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Errors as ours; behind one of the catalog's it is opened again."""
        try:
            with iceberg_refusals(self.name):
                yield
        except TableUnavailableError:
            self._known_catalog = None
            raise

    @property
    def store(self) -> TableStore:
        """At the table's location; there must be a table."""
        if self._store is None:
            table = self._load()
            if table is None:
                raise TableUnavailableError(f"{self.name}: there is no such table")
            self._store = self._open_store(str(table.location()))
        return self._store

    def view(self) -> TableView:
        """The table's current state in the catalog."""
        table = self._load()
        if table is None:
            return self._continuity.checked(TableView(None, None, None))
        progress = self._progress(table)
        if progress is not None and progress.job != self._job:
            raise ForeignTableError(
                f"{self.name} is kept by the job {progress.job}, not by {self._job}"
            )
        view = TableView(progress, arrow_schema(table), IcebergState(table, _head(table)))
        return self._continuity.checked(view)

    def _load(self) -> Any:
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        try:
            with self._translated_errors():
                return self._catalog.load_table(self._identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return None

    def _progress(self, table: Any) -> Progress | None:
        snapshot = table.current_snapshot()
        current = 0 if snapshot is None else snapshot.sequence_number or 0
        while snapshot is not None:
            text = snapshot.summary.get(KEY) if snapshot.summary is not None else None
            if text is not None:
                return decode_progress(text)
            self._refuse_picked(table, snapshot)
            if snapshot.parent_snapshot_id is None:
                break
            snapshot = table.snapshot_by_id(snapshot.parent_snapshot_id)
        kept = table.properties.get(KEY)
        if kept is None:
            return None
        if int(table.properties.get(SEQUENCE, "0")) > current:
            raise ForeignTableError(
                f"{self.name} was rolled back to a state of which no snapshot has the offsets; "
                f"set its property {KEY} to those it has"
            )
        return decode_progress(kept)

    def _refuse_picked(self, table: Any, snapshot: Any) -> None:
        """Another writer's snapshot may add rows that another one has added."""
        picked = snapshot.summary.get(PICKED) if snapshot.summary is not None else None
        if picked is None:
            return
        source = table.snapshot_by_id(int(picked))
        if source is None or source.summary is None or source.summary.get(KEY) is not None:
            raise ForeignTableError(
                f"{self.name}: snapshot {picked} was cherry-picked, whose rows a job has committed "
                "or may have: the table's offsets do not cover them. Roll the table back to a "
                f"snapshot with {KEY} in its summary; the job fills in what is missing"
            )

    def keys(self, view: TableView) -> Sequence[str]:
        """Of the viewed snapshot."""
        if view.state is None:
            return ()
        assert isinstance(view.state, IcebergState)
        table = view.state.table
        base = f"{str(table.location()).rstrip('/')}/"
        with self._translated_errors():
            return tuple(
                str(task.file.file_path).removeprefix(base) for task in table.scan().plan_files()
            )

    def files(self, view: TableView) -> Sequence[TableFile]:
        """Of the viewed snapshot."""
        if view.state is None:
            return ()
        assert isinstance(view.state, IcebergState)
        table = view.state.table
        base = f"{str(table.location()).rstrip('/')}/"
        with iceberg_refusals(self.name):
            tasks = list(table.scan().plan_files())
        offset, time = (table.schema().find_field(name) for name in (OFFSET, TIMESTAMP))
        names = [field.name for field in table.spec().fields]
        return [
            TableFile(
                str(task.file.file_path).removeprefix(base),
                int(task.file.file_size_in_bytes),
                int(task.file.record_count),
                tuple((n, str(v)) for n, v in zip(names, task.file.partition, strict=False)),
                lower_bound(task.file, offset),
                lower_bound(task.file, time),
                why_sealed(task, table),
            )
            for task in tasks
        ]

    def check(self, view: TableView) -> None:
        """By the names of its files."""
        check_offsets(self, view)

    # -- committing ------------------------------------------------------------------------------

    def create(self, schema: pa.Schema, progress: Progress) -> None:
        """An empty table, or the properties of one that is there."""
        from pyiceberg.exceptions import NamespaceAlreadyExistsError, TableAlreadyExistsError

        table = self._load()
        if table is None:
            namespace = self._identifier.rpartition(".")[0]
            with self._translated_errors():
                with suppress(NamespaceAlreadyExistsError):
                    self._catalog.create_namespace(namespace)
                try:
                    table = self._catalog.create_table(
                        self._identifier, schema, properties=PROPERTIES
                    )
                except TableAlreadyExistsError as error:
                    raise CommitConflictError(
                        f"{self.name} was created by another writer"
                    ) from error
        known = self._progress(table)
        if known is not None and known.topic_id == progress.topic_id:
            return
        if known is None:
            self._refuse_leftovers(table)
        with self._translated_errors(), table.transaction() as transaction:
            self._part(transaction, table, known)
            transaction.set_properties(
                {
                    **PROPERTIES,
                    "schema.name-mapping.default": table.schema().name_mapping.model_dump_json(),
                }
            )
            self._add_snapshot(transaction, table, (), progress)

    def _refuse_leftovers(self, table: Any) -> None:
        store = self._open_store(str(table.location()))
        try:
            lost = "it was dropped from its catalog, or another one has its place"
            refuse_leftovers(self.name, store, self.folder, lost)
        except ForeignTableError:
            again = self._load()
            if again is not None and self._progress(again) is not None:
                raise CommitConflictError(f"{self.name} was created by another writer") from None
            raise

    def _part(self, transaction: Any, table: Any, known: Progress | None) -> None:
        from pyiceberg.transforms import (
            DayTransform,
            HourTransform,
            IdentityTransform,
            MonthTransform,
            YearTransform,
        )

        found = [field.name for field in table.spec().fields]
        wanted = [field.name for field in self._partition_by]
        if found == wanted:
            return
        if found or known is not None:
            raise ForeignTableError(f"{self.name} is partitioned by {found}, the job says {wanted}")
        transforms = {
            "year": YearTransform,
            "month": MonthTransform,
            "day": DayTransform,
            "hour": HourTransform,
            "identity": IdentityTransform,
        }
        with transaction.update_spec() as update:
            for field in self._partition_by:
                update.add_field(field.source, transforms[field.transform](), field.name)

    def commit(
        self,
        view: TableView,
        schema: pa.Schema,
        files: Sequence[DataFile],
        progress: Progress,
        remove: Sequence[str] = (),
    ) -> None:
        """One metadata version: columns, properties and the snapshot."""
        assert isinstance(view.state, IcebergState)
        table = view.state.table
        if _head(table) != view.state.snapshot_id:
            # The library's table has followed a commit that was made with this view.
            raise CommitConflictError(
                f"{self.name}: another commit was made on the state it was read at"
            )
        self._check_clock(table)
        self._check_parting(table)
        with self._translated_errors(), table.transaction() as transaction:
            if set(schema.names) - set(table.schema().column_names) or (
                arrow_schema(table) != schema
            ):
                with transaction.update_schema() as update:
                    update.union_by_name(schema)
            self._add_snapshot(transaction, table, files, progress, remove)

    def replace(self, view: TableView, files: Sequence[DataFile], remove: Sequence[str]) -> None:
        """A snapshot of the kind `replace`: incremental readers of added rows skip it."""
        assert isinstance(view.state, IcebergState)
        assert view.progress is not None
        table = view.state.table
        if _head(table) != view.state.snapshot_id:
            raise CommitConflictError(
                f"{self.name}: another commit was made on the state it was read at"
            )
        self._check_clock(table)
        with iceberg_refusals(self.name), table.transaction() as transaction:
            self._add_snapshot(transaction, table, files, view.progress, remove, same_rows=True)

    def _check_parting(self, table: Any) -> None:
        found = [field.name for field in table.spec().fields]
        wanted = [field.name for field in self._partition_by]
        if found != wanted:
            raise ForeignTableError(f"{self.name} is partitioned by {found}, the job says {wanted}")

    def _check_clock(self, table: Any) -> None:
        behind_ms = table.metadata.last_updated_ms - self._clock.now_ms()
        if behind_ms > BEHIND_MAX_MS:
            raise TableUnavailableError(
                f"{self.name}: this machine's clock is {behind_ms / 1000:.0f} s behind the table's "
                "last commit; a commit of this time would make the table unreadable for Iceberg's "
                "readers in Java. Set the clock, or wait"
            )

    def _add_snapshot(
        self,
        transaction: Any,
        table: Any,
        files: Sequence[DataFile],
        progress: Progress,
        remove: Sequence[str] = (),
        *,
        same_rows: bool = False,
    ) -> None:
        text = encode_progress(progress)
        transaction.set_properties(
            {KEY: text, SEQUENCE: str(transaction.table_metadata.next_sequence_number())}
        )
        base = str(table.location()).rstrip("/")
        producer: Any
        if same_rows:
            from pipeline.lake.sinks.iceberg_replace import replace_files

            producer = replace_files(transaction, {KEY: text})
        else:
            snapshot = transaction.update_snapshot(snapshot_properties={KEY: text})
            producer = snapshot.overwrite() if remove else snapshot.fast_append()
        with producer as update:
            for file in files:
                update.append_data_file(manifest_entry(transaction, f"{base}/{file.key}", file))
            gone = {f"{base}/{key}" for key in remove}
            if gone:
                for task in table.scan().plan_files():
                    if task.file.file_path in gone:
                        update.delete_data_file(task.file)
                        gone.discard(task.file.file_path)
                if gone:
                    raise CommitConflictError(f"{self.name}: files to be removed are not in it")
