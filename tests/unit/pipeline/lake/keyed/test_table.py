"""Tables by key: the last record of each key wins, however the log is cut into batches."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.lake.job import LakeJob
from tests.fakes.keyed_log import (
    UPSERT,
    KeyedLog,
    Record,
    oracle,
    rows_of_table,
    value,
)
from tests.fakes.lake_jobs import lake_job, run
from tests.fakes.lake_tables import KINDS, open_sink, read_table


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def keyed_job(kind: str, root: Path, log: KeyedLog, **more: object) -> LakeJob:
    given = {"spec": UPSERT, "read_piece": log.read, **more}
    return lake_job(kind, root, log, **given)  # type: ignore[arg-type]  # the job's own names


def rows(kind: str, root: Path) -> pa.Table:
    return read_table(kind, root)


def some_records(count: int, keys: int = 9) -> list[Record]:
    """Over two partitions, with deletions, null keys and values that do not fit."""
    made = []
    for n in range(count):
        key = None if n % 41 == 40 else f"k{n * 7 % keys}".encode()
        content: bytes | None = value(n)
        if n % 6 == 5:
            content = None
        elif n % 17 == 11:
            content = b"{no json"
        made.append(Record(n * 7 % keys % 2, key, content, 1000 + n))
    return made


def test_the_last_record_of_a_key_is_its_row(kind: str, tmp_path: Path) -> None:
    log = KeyedLog(some_records(120))
    batches = run(keyed_job(kind, tmp_path, log))
    assert batches > 3
    expected = oracle(log)
    assert expected
    assert rows_of_table(read_table(kind, tmp_path)) == expected


def test_nothing_but_the_table_is_left(kind: str, tmp_path: Path) -> None:
    log = KeyedLog(some_records(120))
    run(keyed_job(kind, tmp_path, log))
    store = open_sink(kind, tmp_path).store
    assert not list(store.list("_varve/keyed/runs/"))
    assert not list(store.list("_varve/plans/"))


records = st.lists(
    st.builds(
        Record,
        st.integers(0, 2),
        st.sampled_from([b"", b"a", b"b", b"ab", b"\xff\x00", b"c", None]),
        st.one_of(st.none(), st.integers(0, 9).map(value), st.just(b"{no json")),
        st.integers(-1, 30),
    ),
    max_size=60,
)


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(records, st.lists(st.integers(0, 60), max_size=3), st.integers(100, 3000))
def test_any_log_cut_anywhere_is_its_fold(
    some: Sequence[Record], cuts: Sequence[int], max_bytes: int
) -> None:
    """Keys in several partitions, times that go back, records that come late: one order."""
    with tempfile.TemporaryDirectory() as root:
        log = KeyedLog()
        for start, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(some)], strict=True):
            log.write(some[start:end])
            if log.partitions:
                run(keyed_job("parquet", Path(root), log, max_bytes=max_bytes))
        assert rows_of_table(read_table("parquet", Path(root))) == oracle(log)
