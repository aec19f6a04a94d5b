"""A Delta table through deltalake: offsets are application transactions of the rows' commit.

    app id                                     version
    varve/<job>/<topic id>                     number of the batch
    varve/<job>/<topic id>/<partition>         next offset
    varve/<job>/<topic id>/partitions          1 + the highest partition that ever was in a commit
    varve/<job>/<topic id>/keyed               `Progress.keyed` as a number, where there is one
    varve/<job>/<topic id>/quarantine          `Progress.quarantine`, where it is one

    table property    varve.job, varve.topic, varve.topicId: the table's job and topic
    commit metadata   varve.progress: the same, in the table's history

Unlike a commit's metadata, transactions are in Delta's checkpoints, so they outlive the cleaning of
its log; unlike transactions, metadata has the offsets of a table that was restored
(`delta_history`). A version of 0 is a number like others: None means that there is none.

`max_commit_retries=0`: deltalake would otherwise put a commit behind another one's by itself.
"""

import json
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.lake.batch.progress import KEY, Progress, decode_progress, encode_progress
from pipeline.lake.errors import CommitConflictError, ForeignTableError, TableUnavailableError
from pipeline.lake.files.data_file import DataFile
from pipeline.lake.settings.config import PartitionField
from pipeline.lake.sinks.base import TableFile, TableView
from pipeline.lake.sinks.continuity import Continuity, check_offsets, refuse_leftovers
from pipeline.lake.sinks.delta_history import recorded_offsets
from pipeline.lake.sinks.delta_values import micros_of, sealed_files, stats_times, text_of
from pipeline.lake.sinks.fence import check_fence
from pipeline.lake.sinks.library_errors import delta_refusals
from pipeline.lake.stores.table_store import TableStore
from storage.environment.clock import Clock, SystemClock
from storage.environment.randomness import Randomness, SystemRandomness

LOGGER = logging.getLogger(__name__)


JOB: Final = "varve.job"
TOPIC: Final = "varve.topic"
TOPIC_ID: Final = "varve.topicId"


LOOKS_MAX: Final = 20
"""In a row, each overtaken by another commit."""


def partition_column(field: PartitionField) -> pa.Field | None:
    """The column for a field that a table is partitioned by; None where it has one already."""
    if field.transform == "identity":
        return None
    return pa.field(field.name, pa.date32() if field.transform == "day" else pa.string())


class DeltaSink:
    """`Sink` of a Delta table; see the module."""

    keeps_partition_columns = False
    folder = ""

    def __init__(
        self,
        store: TableStore,
        job: str,
        partition_by: Sequence[PartitionField] = (),
        options: Callable[[], Mapping[str, str]] = dict,
        clock: Clock | None = None,
        randomness: Randomness | None = None,
    ) -> None:
        """`options`: of deltalake for the store, asked for at every view: see `storage_options`."""
        self.name = store.uri
        self.store = store
        self._job = job
        self._partition_by = tuple(partition_by)
        self._options = options
        self._clock = SystemClock() if clock is None else clock
        self._randomness = SystemRandomness() if randomness is None else randomness
        # On a disk the library has a way of its own.
        self._fenced = not store.uri.startswith("s3://")
        self._restored: int | None = None
        self._continuity = Continuity(self.name)

    # -- viewing ---------------------------------------------------------------------------------

    def view(self) -> TableView:
        """The newest version."""
        return self._continuity.checked(self._view())

    def _view(self) -> TableView:
        """A version with its own offsets.

        The library reads transactions from the log as it is by then, not from the version that was
        opened: with a commit in between, offsets would be ahead of the files. So nothing may have
        been committed until they were read.
        """
        for _ in range(LOOKS_MAX):
            table = self._open()
            if table is None:
                return TableView(None, None, None)
            view = TableView(self._progress(table), self._schema(table), table)
            again = self._open()
            if again is not None and again.version() == table.version():
                return view
        raise TableUnavailableError(f"{self.name} is committed to faster than it can be read")

    def _open(self, version: int | None = None) -> Any:
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        with delta_refusals(self.name):
            try:
                return DeltaTable(self.name, version, storage_options=dict(self._options()))
            except TableNotFoundError:
                return None

    def _schema(self, table: Any) -> pa.Schema:
        schema = pa.schema(table.schema().to_arrow())
        made = {c.name for f in self._partition_by if (c := partition_column(f)) is not None}
        return pa.schema([field for field in schema if field.name not in made])

    def _progress(self, table: Any) -> Progress | None:
        known = table.metadata().configuration
        if TOPIC_ID not in known:
            return None
        if known.get(JOB) != self._job:
            raise ForeignTableError(
                f"{self.name} is kept by the job {known.get(JOB)}, not by {self._job}"
            )
        topic_id = UUID(known[TOPIC_ID])
        with delta_refusals(self.name):
            recorded = recorded_offsets(table, self.store, self._open)
        begun = Progress(self._job, known.get(TOPIC, ""), topic_id, 0, {})
        progress = begun if recorded.text is None else decode_progress(recorded.text)
        if progress.topic_id != topic_id:
            # Of the topic before: of this one there is no commit yet.
            progress = begun
        if recorded.restored_to < 0:
            return progress if recorded.text is not None else self._by_transactions(table, begun)
        if table.version() != self._restored:
            self._restored = table.version()
            LOGGER.warning(
                "%s was restored to version %d: the job resumes after batch %d and writes the rows "
                "from there on again",
                *(self.name, recorded.restored_to, progress.batch),
            )
        return progress

    def _by_transactions(self, table: Any, begun: Progress) -> Progress:
        app = self._app(begun.topic_id)
        count = table.transaction_version(f"{app}/partitions")
        offsets = {}
        for partition in range(0 if count is None else count):
            offset = table.transaction_version(f"{app}/{partition}")
            if offset is not None:
                offsets[partition] = offset
        batch = table.transaction_version(app)
        keyed = table.transaction_version(f"{app}/keyed")
        return begun._replace(
            batch=0 if batch is None else batch,
            offsets=offsets,
            keyed="" if keyed is None else f"{keyed:08x}",
            quarantine=table.transaction_version(f"{app}/quarantine") or 0,
        )

    def _app(self, topic_id: UUID) -> str:
        return f"varve/{self._job}/{topic_id}"

    def keys(self, view: TableView) -> Sequence[str]:
        """As the viewed version has them."""
        if view.state is None:
            return ()
        table: Any = view.state
        return tuple(pa.table(table.get_add_actions()).column("path").to_pylist())

    def files(self, view: TableView) -> Sequence[TableFile]:
        """As the viewed version has them."""
        if view.state is None:
            return ()
        table: Any = view.state
        sealed = sealed_files(table)
        parted = [field.name for field in self._partition_by]
        adds = pa.table(table.get_add_actions(flatten=True))
        wanted = ["path", "size_bytes", "num_records", "modification_time"]
        wanted += [f"partition.{name}" for name in parted]
        statistics = ("min.offset", "min.timestamp")
        wanted += [name for name in statistics if name in adds.column_names]
        return [
            TableFile(
                add["path"],
                int(add["size_bytes"]),
                -1 if add["num_records"] is None else int(add["num_records"]),
                tuple((name, text_of(add[f"partition.{name}"]) or "") for name in parted),
                int(add.get("min.offset") or 0),
                micros_of(add.get("min.timestamp")) or int(add["modification_time"]) * 1000,
                sealed.get(add["path"], sealed.get("", "")),
            )
            for add in adds.select(wanted).to_pylist()
        ]

    def check(self, view: TableView) -> None:
        """By the names of its files."""
        check_offsets(self, view)

    # -- committing ------------------------------------------------------------------------------

    def create(self, schema: pa.Schema, progress: Progress) -> None:
        """Version 0, or the table's properties."""
        from deltalake import DeltaTable

        properties = {
            JOB: self._job,
            TOPIC: progress.topic,
            TOPIC_ID: str(progress.topic_id),
        }
        self._check_fence()
        table = self._open()
        if table is None:
            self._refuse_leftovers()
            columns = [c for f in self._partition_by if (c := partition_column(f)) is not None]
            with delta_refusals(self.name):
                DeltaTable.create(
                    self.name,
                    pa.schema([*schema, *columns]),
                    mode="error",
                    partition_by=[field.name for field in self._partition_by],
                    configuration=properties,
                    raise_if_key_not_exists=False,
                    storage_options=dict(self._options()),
                    commit_properties=self.commit_properties(),
                )
            return
        known = self._progress(table)
        if known is None or known.topic_id != progress.topic_id:
            self._check_parting(table)
            with delta_refusals(self.name):
                table.alter.set_table_properties(
                    properties,
                    raise_if_not_exists=False,
                    commit_properties=self.commit_properties(),
                )

    def _check_fence(self) -> None:
        if not self._fenced:
            check_fence(self.store, self._randomness)
            self._fenced = True

    def _refuse_leftovers(self) -> None:
        try:
            refuse_leftovers(self.name, self.store, "", "its _delta_log is lost")
        except ForeignTableError:
            if self._open() is not None:
                raise CommitConflictError(f"{self.name} was created by another writer") from None
            raise

    def _check_parting(self, table: Any) -> None:
        wanted = [field.name for field in self._partition_by]
        if list(table.metadata().partition_columns) != wanted:
            raise ForeignTableError(
                f"{self.name} is partitioned by {list(table.metadata().partition_columns)}, "
                f"the job says {wanted}"
            )

    def commit(
        self,
        view: TableView,
        schema: pa.Schema,
        files: Sequence[DataFile],
        progress: Progress,
        remove: Sequence[str] = (),
    ) -> None:
        """One version of the table; one more before it where columns are added."""
        from deltalake.transaction import Transaction

        table: Any = view.state
        self._check_fence()
        self._check_parting(table)
        self._add_columns(table, schema)
        app = self._app(progress.topic_id)
        transactions = [
            Transaction(f"{app}/{partition}", offset)
            for partition, offset in sorted(progress.offsets.items())
            if table.transaction_version(f"{app}/{partition}") != offset
        ]
        transactions.append(Transaction(app, progress.batch))
        transactions.append(Transaction(f"{app}/partitions", max(progress.offsets, default=-1) + 1))
        if progress.quarantine:
            transactions.append(Transaction(f"{app}/quarantine", progress.quarantine))
        if progress.keyed:
            transactions.append(Transaction(f"{app}/keyed", int(progress.keyed, 16)))
        actions = [self._add(file) for file in files]
        actions += self._removals(table, remove)
        with delta_refusals(self.name):
            table.create_write_transaction(
                actions,
                mode="append",
                schema=table.schema(),
                partition_by=[field.name for field in self._partition_by],
                commit_properties=self.commit_properties(
                    custom_metadata={KEY: encode_progress(progress)}, app_transactions=transactions
                ),
            )

    def replace(self, view: TableView, files: Sequence[DataFile], remove: Sequence[str]) -> None:
        """One version without a change of data: streams that read the table pass it over."""
        table: Any = view.state
        assert view.progress is not None
        self._check_parting(table)
        actions = [self._add(file, data_change=False) for file in files]
        actions += self._removals(table, remove, data_change=False)
        with delta_refusals(self.name):
            table.create_write_transaction(
                actions,
                mode="append",
                schema=table.schema(),
                partition_by=[field.name for field in self._partition_by],
                commit_properties=self.commit_properties(
                    custom_metadata={KEY: encode_progress(view.progress)}
                ),
            )

    def commit_properties(self, **more: Any) -> Any:
        """Of deltalake, for a commit that nothing repeats by itself."""
        from deltalake import CommitProperties

        return CommitProperties(max_commit_retries=0, **more)

    def _add_columns(self, table: Any, schema: pa.Schema) -> None:
        from deltalake import Schema

        known = {field.name for field in table.schema().fields}
        new = [field for field in Schema.from_arrow(schema).fields if field.name not in known]
        if new:
            with delta_refusals(self.name):
                table.alter.add_columns(new, commit_properties=self.commit_properties())

    def _add(self, file: DataFile, *, data_change: bool = True) -> Any:
        from deltalake.transaction import AddAction

        return AddAction(
            path=file.key,
            size=file.size,
            partition_values=dict(file.values),
            modification_time=file.max_timestamp_us // 1000,
            data_change=data_change,
            stats=json.dumps(self._stats(file)),
        )

    def _stats(self, file: DataFile) -> dict[str, Any]:
        parted = {field.name for field in self._partition_by}
        least: dict[str, Any] = {"offset": file.first_offset}
        most: dict[str, Any] = {"offset": file.last_offset}
        times = stats_times(file.min_timestamp_us, file.max_timestamp_us)
        if times is not None:
            least["timestamp"], most["timestamp"] = times
        if "partition" not in parted and file.partition >= 0:
            least["partition"] = most["partition"] = file.partition
        return {"numRecords": file.rows, "minValues": least, "maxValues": most, "nullCount": {}}

    def _removals(self, table: Any, keys: Sequence[str], *, data_change: bool = True) -> list[Any]:
        if not keys:
            return []
        from deltalake.transaction import RemoveAction

        adds = pa.table(table.get_add_actions(flatten=True))
        parted = {c: c.partition(".")[2] for c in adds.column_names if c.startswith("partition.")}
        adds = adds.select(["path", "size_bytes", *parted])
        found = adds.filter(pc.is_in(adds.column("path"), pa.array(keys))).to_pylist()
        if len(found) != len(set(keys)):
            raise CommitConflictError(f"{self.name}: files to be removed are not in it any more")
        return [
            RemoveAction(
                path=add["path"],
                data_change=data_change,
                deletion_timestamp=self._clock.now_ms(),
                size=add["size_bytes"],
                partition_values={name: text_of(add[column]) for column, name in parted.items()},
            )
            for add in found
        ]
