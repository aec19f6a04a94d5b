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
from pipeline.lake.files.partition_values import iceberg_value
from pipeline.lake.settings.config import PartitionField
from pipeline.lake.sinks.base import TableFile, TableView
from pipeline.lake.sinks.continuity import Continuity, check_offsets, refuse_leftovers
from pipeline.lake.stores.table_store import TableStore
from storage.environment.clock import Clock, SystemClock

SEQUENCE: Final = "varve.sequence"

BEHIND_MAX_MS: Final = 60_000
"""That a commit may be dated before the one before it: Iceberg's readers in Java take no more."""

PICKED: Final = "source-snapshot-id"
"""In the summary of a snapshot that Iceberg has cherry-picked from another one."""

PROPERTIES: Final = {"commit.retry.num-retries": "0", "format-version": "2"}

OFFSET: Final = "offset"
TIMESTAMP: Final = "timestamp"


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
            with refusals(self.name):
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
        view = TableView(progress, _arrow_schema(table), IcebergState(table, _head(table)))
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
        with refusals(self.name):
            tasks = list(table.scan().plan_files())
        offset, time = (table.schema().find_field(name) for name in (OFFSET, TIMESTAMP))
        names = [field.name for field in table.spec().fields]
        return [
            TableFile(
                str(task.file.file_path).removeprefix(base),
                int(task.file.file_size_in_bytes),
                int(task.file.record_count),
                tuple((n, str(v)) for n, v in zip(names, task.file.partition, strict=False)),
                _least(task.file, offset),
                _least(task.file, time),
                _why_sealed(task, table),
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
                _arrow_schema(table) != schema
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
        with refusals(self.name), table.transaction() as transaction:
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
                update.append_data_file(_data_file(transaction, f"{base}/{file.key}", file))
            gone = {f"{base}/{key}" for key in remove}
            if gone:
                for task in table.scan().plan_files():
                    if task.file.file_path in gone:
                        update.delete_data_file(task.file)
                        gone.discard(task.file.file_path)
                if gone:
                    raise CommitConflictError(f"{self.name}: files to be removed are not in it")


def _least(file: Any, field: Any) -> int:
    """The lower bound of a column of whole numbers or times; 0 where the table has none."""
    from pyiceberg.conversions import from_bytes

    bound = (file.lower_bounds or {}).get(field.field_id)
    return 0 if bound is None else int(from_bytes(field.field_type, bound))


def _why_sealed(task: Any, table: Any) -> str:
    if task.delete_files:
        return "rows of it are deleted by delete files"
    if task.file.spec_id != table.metadata.default_spec_id:
        return "it is partitioned as the table was before"
    return ""


def _data_file(transaction: Any, path: str, file: DataFile) -> Any:
    """Manifest's entry, with bounds of offset and timestamp: what scans prune by."""
    from pyiceberg.conversions import to_bytes
    from pyiceberg.manifest import DataFile as IcebergFile
    from pyiceberg.manifest import DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    metadata = transaction.table_metadata
    schema = metadata.schema()
    lower, upper = {}, {}
    bounds = {
        OFFSET: (file.first_offset, file.last_offset),
        TIMESTAMP: (file.min_timestamp_us, file.max_timestamp_us),
    }
    for name, (least, most) in bounds.items():
        field = schema.find_field(name)
        lower[field.field_id] = to_bytes(field.field_type, least)
        upper[field.field_id] = to_bytes(field.field_type, most)
    fields = {field.name: field for field in _fields(metadata.spec())}
    values = [iceberg_value(fields[name], text) for name, text in file.values]
    return IcebergFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=Record(*values),
        record_count=file.rows,
        file_size_in_bytes=file.size,
        column_sizes={},
        value_counts={},
        null_value_counts={},
        nan_value_counts={},
        lower_bounds=lower,
        upper_bounds=upper,
        key_metadata=None,
        split_offsets=None,
        equality_ids=None,
        sort_order_id=None,
        spec_id=metadata.default_spec_id,
    )


def _fields(spec: Any) -> Iterator[PartitionField]:
    for field in spec.fields:
        transform = str(field.transform)
        source = field.name.removesuffix(f"_{transform}")
        yield PartitionField(transform, source)


def _arrow_schema(table: Any) -> pa.Schema:
    """Without the field ids and with plain texts: as converters have it."""
    return _plain(table.schema().as_arrow())


def _plain(schema: pa.Schema) -> pa.Schema:
    return pa.schema([_plain_field(field) for field in schema])


def _plain_field(field: pa.Field) -> pa.Field:
    return pa.field(field.name, _plain_type(field.type), field.nullable)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain_field(kind.value_field).with_name("element"))
    if pa.types.is_map(kind):
        return pa.map_(_plain_type(kind.key_type), _plain_field(kind.item_field))
    if pa.types.is_struct(kind):
        return pa.struct([_plain_field(kind.field(index)) for index in range(kind.num_fields)])
    return kind


@contextmanager
def refusals(name: str) -> Iterator[None]:
    """Translate pyiceberg's errors, and those of its catalogs' libraries, into ours."""
    from pyiceberg.exceptions import (
        CommitFailedException,
        RESTError,
        ServiceUnavailableError,
        ValidationException,
    )
    from requests.exceptions import RequestException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (CommitFailedException, ValidationException) as error:
        raise CommitConflictError(f"{name}: {error}") from error
    except (RESTError, ServiceUnavailableError, RequestException, OSError) as error:
        raise TableUnavailableError(f"{name}: {error}") from error
    except SQLAlchemyError as error:
        # The library's text may have the catalog's address, and that a password.
        raise TableUnavailableError(f"{name}: {type(error).__name__}") from None
