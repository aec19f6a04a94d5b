"""A store is trusted with commits when its conditional puts hold."""

from pathlib import Path

import pytest

from pipeline.lake.errors import ForeignTableError
from pipeline.lake.sinks.delta import DeltaSink
from pipeline.lake.sinks.fence import PROBE, check_fence
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SeededRandomness, SystemRandomness
from tests.contract.test_table_sink import BEGUN, SCHEMA
from tests.fakes.lake.tables import ForgetfulStore, open_directory


def test_a_store_that_holds_is_trusted_again_and_again(tmp_path: Path) -> None:
    store = open_directory(str(tmp_path))
    for seed in range(3):
        check_fence(store, SeededRandomness(seed))
    assert [file.key for file in store.list("")] == [PROBE]


def test_one_that_takes_every_put_is_refused_and_trusted_once_it_is_mended(tmp_path: Path) -> None:
    forgetful = ForgetfulStore(str(tmp_path), LocalFilesystem(), SystemRandomness())
    for _ in range(2):
        with pytest.raises(ForeignTableError, match="ignores If-None-Match"):
            check_fence(forgetful, SystemRandomness())
    check_fence(open_directory(str(tmp_path)), SystemRandomness())


def test_delta_does_not_begin_a_table_there(tmp_path: Path) -> None:
    """Its library would put both commits: one job's rows would be gone."""
    store = ForgetfulStore(str(tmp_path), LocalFilesystem(), SystemRandomness())
    store.uri = "s3://bucket/table"
    with pytest.raises(ForeignTableError, match="ignores If-None-Match"):
        DeltaSink(store, "orders-lake").create(SCHEMA, BEGUN)
