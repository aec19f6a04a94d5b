"""A Parquet table: files, and commit objects that say which of them are the table.

    <table>/_varve/commits/<number, 20 digits>.json       put if absent: the number is the fence
    <table>/_varve/checkpoints/<number, 20 digits>.json   all files up to that commit

    commit      {"version": 1, "attempt": "...", "progress": {...}, "schema": "...",
                 "add": [file], "remove": [key]}
    checkpoint  {"version": 1, "progress": {...}, "schema": "...", "files": [file]}

`attempt` is another one each time: of two jobs that commit the same, one learns that it did not.
`schema` is Arrow's IPC form in base64; a file is `DataFile.as_json`. `committed_files` is what an
exact reader takes. One that lists the folder sees each row once, too, since whatever is repeated
makes the same files; it sees rows of a batch before the batch is committed.
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple

import pyarrow as pa

from pipeline.lake.batch.batch_plan import PlanShelf, TaskRange
from pipeline.lake.batch.progress import Progress, decode_progress, encode_progress
from pipeline.lake.errors import CommitConflictError, ForeignTableError, TableUnavailableError
from pipeline.lake.files.data_file import DataFile, data_file_from_json, range_of
from pipeline.lake.settings.config import PartitionField
from pipeline.lake.sinks.base import TableFile, TableView
from pipeline.lake.sinks.continuity import Continuity, check_offsets, refuse_leftovers
from pipeline.lake.sinks.fence import check_fence
from pipeline.lake.stores.table_store import TableStore
from storage.environment.randomness import Randomness

VERSION: Final = 1

COMMITS: Final = "_varve/commits/"
CHECKPOINTS: Final = "_varve/checkpoints/"

CHECKPOINT_EVERY: Final = 50
"""Commits from one checkpoint to the next."""

CHECKPOINTS_KEPT: Final = 2

READS_MAX: Final = 3
"""Of a table whose commits are folded while they are read."""


class ParquetState(NamedTuple):
    """The table at commit `number`; -1: there is none."""

    number: int
    files: Mapping[str, DataFile]


class ParquetSink:
    """`Sink` of Parquet files; see the module."""

    keeps_partition_columns = False
    folder = ""

    def __init__(
        self,
        store: TableStore,
        job: str,
        randomness: Randomness,
        partition_by: Sequence[PartitionField] = (),
    ) -> None:
        """Nothing is asked of the store yet."""
        self.name = store.uri
        self.store = store
        self._job = job
        self._randomness = randomness
        self._known: TableView | None = None
        self._fenced = False
        self._continuity = Continuity(self.name)
        self._parted = [field.name for field in partition_by]

    def view(self) -> TableView:
        """The last commit, from the last checkpoint or the last view on."""
        view = read_table(self.store, self._known)
        if view.progress is not None and view.progress.job != self._job:
            raise ForeignTableError(
                f"{self.name} is kept by the job {view.progress.job}, not by {self._job}"
            )
        self._known = view
        return self._continuity.checked(view)

    def check(self, view: TableView) -> None:
        """Also by what is in the folder: nothing but the commits says what is the table."""
        check_offsets(self, view)
        if view.progress is None:
            return
        state = view.state
        assert isinstance(state, ParquetState)
        for file in state.files.values():
            parted = [name for name, _ in file.values]
            if parted != self._parted:
                raise ForeignTableError(
                    f"{self.name} is partitioned by {parted}, the job says {self._parted}"
                )
        there = {file.key for file in self.store.list("") if not file.key.startswith("_")}
        if gone := state.files.keys() - there:
            if read_table(self.store).state != state:
                return  # another commit came in between
            raise ForeignTableError(
                f"{self.name}: {len(gone)} files that its commits name are gone, such as "
                f"{min(gone)}: the folder was emptied or copied in part. Restore them; or, to fill "
                "a new table from the start of the log, remove _varve/ and all other files"
            )
        planned = PlanShelf(self.store).ranges(view.progress)
        stray = [key for key in there - state.files.keys() if _is_stray(key, view, planned)]
        if stray and read_table(self.store).progress == view.progress:
            raise ForeignTableError(
                f"{self.name}: there are files behind its last commit, such as {min(stray)}, and "
                "no plan for them: commits or plans in _varve/ are lost. Restore _varve/; or "
                f"remove these {len(stray)} files to have their offsets written again"
            )

    def create(self, schema: pa.Schema, progress: Progress) -> None:
        """A commit without files."""
        view = self.view()
        if view.progress is not None and view.progress.topic_id == progress.topic_id:
            return
        if view.progress is None:
            self._refuse_leftovers()
        self.commit(view, _widened(view.schema, schema), (), progress)

    def _refuse_leftovers(self) -> None:
        try:
            refuse_leftovers(self.name, self.store, "", "its _varve/ is lost")
        except ForeignTableError:
            if read_table(self.store).progress is not None:
                raise CommitConflictError(f"{self.name} was created by another writer") from None
            raise

    def commit(
        self,
        view: TableView,
        schema: pa.Schema,
        files: Sequence[DataFile],
        progress: Progress,
        remove: Sequence[str] = (),
    ) -> None:
        """Put the next number, if it is absent. Objects of removed files stay."""
        state = view.state
        assert isinstance(state, ParquetState)
        if not state.files.keys() >= frozenset(remove):
            raise CommitConflictError(f"{self.name}: files to be removed are not in it any more")
        if not self._fenced:
            check_fence(self.store, self._randomness)
            self._fenced = True
        number = state.number + 1
        commit = {
            "version": VERSION,
            "attempt": self._randomness.uuid4().hex,
            "progress": json.loads(encode_progress(progress)),
            "schema": _encode_schema(schema),
            "add": [file.as_json() for file in files],
            "remove": list(remove),
        }
        if not self.store.put_if_absent(_commit_key(number), json.dumps(commit).encode()):
            raise CommitConflictError(f"{self.name}: another writer made commit {number}")
        self._check_fence(number)
        after = ParquetState(number, _applied(state.files, files, remove))
        self._known = TableView(progress, schema, after)
        if number % CHECKPOINT_EVERY == 0 and number:
            with suppress(TableUnavailableError):
                # It only saves time: one that fails is made with a later commit.
                self.checkpoint(self._known)

    def keys(self, view: TableView) -> Sequence[str]:
        """As the commits say."""
        assert isinstance(view.state, ParquetState)
        return tuple(view.state.files)

    def _check_fence(self, number: int) -> None:
        """Numbers below a checkpoint are taken, also where their objects are folded into it.

        A job that has slept for longer than commits are kept finds its number free again. No job
        reads what it puts there.
        """
        last = max((commit_number(file.key) for file in self.store.list(CHECKPOINTS)), default=-1)
        if number <= last:
            self._known = None
            raise CommitConflictError(
                f"{self.name}: commit {number} is below the checkpoint {last} by now"
            )

    def replace(self, view: TableView, files: Sequence[DataFile], remove: Sequence[str]) -> None:
        """A commit with the offsets of the one before."""
        assert view.schema is not None
        assert view.progress is not None
        self.commit(view, view.schema, files, view.progress, remove)

    def files(self, view: TableView) -> Sequence[TableFile]:
        """As the commits say."""
        assert isinstance(view.state, ParquetState)
        return [
            TableFile(f.key, f.size, f.rows, f.values, f.first_offset, f.min_timestamp_us)
            for f in view.state.files.values()
        ]

    def checkpoint(self, view: TableView) -> None:
        """Write the whole state as a checkpoint, where views begin; only saves them time."""
        state, progress = view.state, view.progress
        assert isinstance(state, ParquetState)
        assert progress is not None
        checkpoint = {
            "version": VERSION,
            "progress": json.loads(encode_progress(progress)),
            "schema": _encode_schema(view.schema),
            "files": [file.as_json() for file in state.files.values()],
        }
        self.store.put(_checkpoint_key(state.number), json.dumps(checkpoint).encode())
        kept = [file.key for file in self.store.list(CHECKPOINTS)]
        self.store.delete(kept[:-CHECKPOINTS_KEPT])


def _is_stray(key: str, view: TableView, planned: frozenset[TaskRange]) -> bool:
    """Of offsets that the table has still to get, and of no plan that is stored."""
    named, progress = range_of(key), view.progress
    assert progress is not None
    return (
        named is not None
        and named.topic_id_start == progress.topic_id.hex[:8]
        and named.end > progress.offsets.get(named.partition, 0)
        and TaskRange(named.partition, named.start, named.end) not in planned
    )


def committed_files(store: TableStore) -> tuple[DataFile, ...]:
    """The files that are the table, in no order."""
    state = read_table(store).state
    assert isinstance(state, ParquetState)
    return tuple(state.files.values())


def read_table(store: TableStore, known: TableView | None = None) -> TableView:
    """The table by its commits; `known` saves reading again what an earlier view has read.

    Commits may be folded into a checkpoint while they are read, or since `known`: then the newest
    checkpoint is where to begin, as it is where the table is gone or was taken back.
    """
    if known is not None and _is_there(store, known):
        with suppress(ForeignTableError):
            return _followed(store, known)
    for _ in range(READS_MAX - 1):
        with suppress(ForeignTableError):
            return _followed(store, _last_checkpoint(store))
    return _followed(store, _last_checkpoint(store))


def _followed(store: TableStore, known: TableView) -> TableView:
    """With the commits behind `known`."""
    progress, schema, state = known
    assert isinstance(state, ParquetState)
    number, files = state.number, state.files
    for stored in store.list(COMMITS, after=_commit_key(number) if number >= 0 else ""):
        number += 1
        if stored.key != _commit_key(number):
            raise ForeignTableError(f"{store.uri}: commit {number} is missing")
        commit = _read_json(store, stored.key)
        try:
            add = [data_file_from_json(file) for file in commit["add"]]
            remove = [str(key) for key in commit["remove"]]
            schema = _decode_schema(commit["schema"])
            progress = decode_progress(json.dumps(commit["progress"]))
        except (KeyError, TypeError, ValueError, pa.ArrowInvalid) as error:
            raise _damaged(store, stored.key, error) from error
        files = _applied(files, add, remove)
    return TableView(progress, schema, ParquetState(number, files))


def _is_there(store: TableStore, known: TableView) -> bool:
    assert isinstance(known.state, ParquetState)
    return known.state.number < 0 or store.size(_commit_key(known.state.number)) is not None


def _last_checkpoint(store: TableStore) -> TableView:
    keys = [file.key for file in store.list(CHECKPOINTS)]
    if not keys:
        return TableView(None, None, ParquetState(-1, {}))
    found = _read_json(store, keys[-1])
    try:
        number = commit_number(keys[-1])
        files = [data_file_from_json(file) for file in found["files"]]
        schema = _decode_schema(found["schema"])
        progress = decode_progress(json.dumps(found["progress"]))
    except (KeyError, TypeError, ValueError, pa.ArrowInvalid) as error:
        raise _damaged(store, keys[-1], error) from error
    return TableView(progress, schema, ParquetState(number, {file.key: file for file in files}))


def _applied(
    files: Mapping[str, DataFile], add: Iterable[DataFile], remove: Iterable[str]
) -> Mapping[str, DataFile]:
    gone = frozenset(remove)
    kept = {key: file for key, file in files.items() if key not in gone}
    return {**kept, **{file.key: file for file in add}}


def _widened(first: pa.Schema | None, second: pa.Schema) -> pa.Schema:
    if first is None:
        return second
    return pa.unify_schemas([first, second], promote_options="permissive")


def _read_json(store: TableStore, key: str) -> Mapping[str, Any]:
    data = store.get(key)
    if data is None:
        raise ForeignTableError(f"{store.uri}: {key} is listed and cannot be read")
    try:
        found = json.loads(data)
        if found["version"] != VERSION:
            raise ForeignTableError(
                f"{store.uri}: {key} has version {found['version']}, this release knows {VERSION}"
            )
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(store, key, error) from error
    else:
        checked: Mapping[str, Any] = found
        return checked


def _damaged(store: TableStore, key: str, error: Exception) -> ForeignTableError:
    return ForeignTableError(f"{store.uri}: {key} is damaged: {error}")


def commit_number(key: str) -> int:
    """Of a commit's object, or a checkpoint's; ValueError where the name is neither's."""
    return int(key.rpartition("/")[2].removesuffix(".json"))


def _commit_key(number: int) -> str:
    return f"{COMMITS}{number:020d}.json"


def _checkpoint_key(number: int) -> str:
    return f"{CHECKPOINTS}{number:020d}.json"


def _encode_schema(schema: pa.Schema | None) -> str:
    assert schema is not None
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def _decode_schema(text: str) -> pa.Schema:
    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
