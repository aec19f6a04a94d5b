"""Commit objects of Parquet tables: checkpoints, damage, stores without a conditional put."""

import json
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest

from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import ForeignTableError
from pipeline.lake.files.data_file import DataFile
from pipeline.lake.sinks.parquet import (
    CHECKPOINT_EVERY,
    CHECKPOINTS,
    COMMITS,
    ParquetSink,
    committed_files,
)
from pipeline.lake.stores.directory_store import DirectoryStore
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SystemRandomness
from tests.fakes.lake.tables import ForgetfulStore, open_directory

BEGUN = Progress("job", "orders", UUID(int=7), 0, {})
SCHEMA = pa.schema([("offset", pa.int64())])


def file(number: int) -> DataFile:
    return DataFile(f"part-{number}.parquet", 10, 1, 0, number, number, 0, 0)


def with_commits(store: DirectoryStore, count: int) -> Progress:
    sink = ParquetSink(store, "job", SystemRandomness())
    sink.create(SCHEMA, BEGUN)
    progress = BEGUN
    for number in range(count):
        progress = progress.advanced({0: number + 1})
        sink.commit(sink.view(), SCHEMA, [file(number)], progress)
    return progress


def test_a_checkpoint_saves_reading_all_commits(tmp_path: Path) -> None:
    store = open_directory(str(tmp_path))
    progress = with_commits(store, 2 * CHECKPOINT_EVERY + 3)
    assert len(list(store.list(CHECKPOINTS))) == 2
    for commit in list(store.list(COMMITS))[: 2 * CHECKPOINT_EVERY]:
        store.delete([commit.key])
    assert ParquetSink(store, "job", SystemRandomness()).view().progress == progress
    assert len(committed_files(store)) == 2 * CHECKPOINT_EVERY + 3


def test_a_missing_commit_is_no_table(tmp_path: Path) -> None:
    """What is not found may be lost: going on would forget its files and offsets."""
    store = open_directory(str(tmp_path))
    with_commits(store, 5)
    store.delete([f"{COMMITS}{3:020d}.json"])
    with pytest.raises(ForeignTableError, match="commit 3 is missing"):
        ParquetSink(store, "job", SystemRandomness()).view()


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[1]", b'{"version": 1}', b'{"version": 2}', b"\xff"]
)
def test_a_damaged_commit_is_told(tmp_path: Path, data: bytes) -> None:
    store = open_directory(str(tmp_path))
    with_commits(store, 2)
    store.put(f"{COMMITS}{2:020d}.json", data)
    with pytest.raises(ForeignTableError, match=r"damaged|version 2"):
        ParquetSink(store, "job", SystemRandomness()).view()


def test_a_store_that_ignores_conditions_is_refused(tmp_path: Path) -> None:
    store = ForgetfulStore(str(tmp_path), LocalFilesystem(), SystemRandomness())
    with pytest.raises(ForeignTableError, match="If-None-Match"):
        ParquetSink(store, "job", SystemRandomness()).create(SCHEMA, BEGUN)


def test_the_form_of_a_commit_is_the_documented_one(tmp_path: Path) -> None:
    store = open_directory(str(tmp_path))
    with_commits(store, 1)
    data = store.get(f"{COMMITS}{1:020d}.json")
    assert data is not None
    commit = json.loads(data)
    assert set(commit) == {"version", "attempt", "progress", "schema", "add", "remove"}
    assert commit["add"] == [file(0).as_json()]
    assert commit["progress"]["offsets"] == {"0": 1}
