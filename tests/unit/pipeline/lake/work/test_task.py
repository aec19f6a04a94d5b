"""One task: files that hold exactly its rows, or an error and nothing half written."""

import pickle
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.lake.files.data_file import FileNames
from pipeline.lake.files.file_writer import WriterOptions
from pipeline.lake.work.task import (
    QuarantinedError,
    RowOrderError,
    TableTarget,
    Task,
    TaskSpec,
    results_of,
    run_task,
)
from pipeline.plan.piece import BrokerPiece, PartitionName, Piece
from tests.fakes.lake.jobs import SPEC
from tests.fakes.lake.numbers_log import TOPIC_ID, is_bad, is_marker, read_rows
from tests.fakes.lake.tables import OpenDirectory

NAMES = FileNames("", "orders", TOPIC_ID, 0, 0, 60, "0a1b2c3d")
GOOD = [o for o in range(60) if not is_marker(o) and not is_bad(o)]
BAD = [o for o in range(60) if not is_marker(o) and is_bad(o)]


def piece(start: int, end: int) -> Piece:
    return BrokerPiece(PartitionName("orders", TOPIC_ID, 0), -1, start, end)


def task(*pieces: Piece, skipped: tuple[int, ...] = ()) -> Task:
    return Task(NAMES, NAMES, pieces, skipped)


def spec(root: Path, *, quarantine: bool = True) -> TaskSpec:
    rows = TableTarget(OpenDirectory(f"{root}/rows"), "", WriterOptions())
    bad = TableTarget(OpenDirectory(f"{root}/bad"), "", WriterOptions())
    return TaskSpec(rows, bad if quarantine else None, SPEC)


def offsets(root: Path) -> list[int]:
    found: list[int] = []
    for path in sorted(root.glob("*.parquet")):
        found += pq.read_table(path).column("offset").to_pylist()
    return found


def test_each_record_is_a_row_or_in_the_quarantine(tmp_path: Path) -> None:
    result = run_task(task(piece(0, 35), piece(35, 60)), spec(tmp_path), read_rows)
    assert offsets(tmp_path / "rows") == GOOD
    assert offsets(tmp_path / "bad") == BAD
    assert (result.rows, result.quarantined) == (len(GOOD), len(BAD))
    assert sum(file.rows for file in result.files) == len(GOOD)
    assert result.read_bytes > 0
    together = results_of([result, result])
    assert together.rows == 2 * len(GOOD)
    assert len(together.quarantine_files) == 2


def test_how_a_reader_cuts_its_batches_changes_no_byte(tmp_path: Path) -> None:
    """A repeated task may read from another copy, or from a broker."""

    def otherwise(one: Piece) -> Iterator[pa.RecordBatch]:
        return read_rows(one, batch_rows=1)

    first = run_task(task(piece(0, 60)), spec(tmp_path / "a"), read_rows)
    second = run_task(task(piece(0, 17), piece(17, 60)), spec(tmp_path / "b"), otherwise)
    assert first == second
    for kind in ("rows", "bad"):
        (one,) = (tmp_path / "a" / kind).iterdir()
        (other,) = (tmp_path / "b" / kind).iterdir()
        assert one.name == other.name
        assert one.read_bytes() == other.read_bytes()


def test_a_task_of_markers_only_makes_no_file(tmp_path: Path) -> None:
    result = run_task(task(piece(9, 10)), spec(tmp_path), read_rows)
    assert (result.files, result.rows) == ((), 0)


@pytest.mark.parametrize(
    "pieces",
    [
        (piece(0, 20), piece(10, 30)),
        (piece(0, 20), piece(0, 20)),
        (piece(50, 70),),
        (piece(20, 40), piece(0, 20)),
    ],
)
def test_rows_that_should_not_come_end_the_task(tmp_path: Path, pieces: tuple[Piece, ...]) -> None:
    with pytest.raises(RowOrderError, match="were to come"):
        run_task(task(*pieces), spec(tmp_path), read_rows)
    assert not list(tmp_path.rglob("*.parquet"))
    assert not list(tmp_path.rglob("*.tmp"))


def test_without_a_quarantine_the_first_misfit_ends_the_task(tmp_path: Path) -> None:
    with pytest.raises(QuarantinedError, match="orders-0 at offset 3"):
        run_task(task(piece(0, 60)), spec(tmp_path, quarantine=False), read_rows)
    assert not list(tmp_path.rglob("*.parquet"))


def test_what_the_quarantine_has_is_in_neither_table(tmp_path: Path) -> None:
    """Not again there, and not among the rows, where it would be a second one."""
    result = run_task(task(piece(0, 60), skipped=(0, 3, 28)), spec(tmp_path), read_rows)
    assert offsets(tmp_path / "rows") == [o for o in GOOD if o != 0]
    assert offsets(tmp_path / "bad") == [o for o in BAD if o not in (3, 28)]
    assert result.rows == len(GOOD) - 1


def test_a_reader_that_fails_leaves_nothing_half_written(tmp_path: Path) -> None:
    def broken(one: Piece) -> Iterator[pa.RecordBatch]:
        yield from read_rows(piece(0, 30))
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        run_task(task(piece(0, 60)), spec(tmp_path), broken)
    assert not list(tmp_path.rglob("*.tmp"))


def test_tasks_and_results_travel(tmp_path: Path) -> None:
    one = task(piece(0, 60))
    result = run_task(one, spec(tmp_path), read_rows)
    assert pickle.loads(pickle.dumps((one, spec(tmp_path), result))) == (
        one,
        spec(tmp_path),
        result,
    )
    assert UUID(bytes=TOPIC_ID.bytes) == one.names.topic_id
