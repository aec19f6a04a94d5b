"""What operators do to a lake job: nothing is lost or doubled, and it goes on when it is mended."""

import shutil
import sqlite3
import subprocess
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pipeline.lake.errors import ForeignTableError, TableUnavailableError
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_bad, rows_of
from tests.fakes.lake.tables import coordinates, open_catalog, open_sink, read_table

LOG = {0: (0, 60), 1: (5, 33)}
LONGER = {0: (0, 90), 1: (5, 33)}


def good(log: dict[int, tuple[int, int]]) -> list[tuple[int, int]]:
    return [one for one in rows_of(log) if not is_bad(one[1])]


# -- the disk -----------------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(disk)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"there is no mount: {error}")
    if done.returncode:
        pytest.skip(f"no file system can be mounted: {done.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def fill(disk: Path, left: int) -> Path:
    """A file that leaves so many bytes."""
    ballast = disk / "ballast"
    free = shutil.disk_usage(disk).free
    ballast.write_bytes(b"x" * max(0, free - left))
    return ballast


@pytest.mark.parametrize("left", [0, 12_288])
def test_a_full_disk_is_told_and_waited_for(kind: str, small_disk: Path, left: int) -> None:
    """Wherever it becomes full: scratch files, plans, the library's log, a catalog."""
    log = FakeLog({0: (0, 20), 1: (5, 9)})
    keeper = lake_job(kind, small_disk, log)
    run(keeper)
    log.partitions = dict(LONGER)
    ballast = fill(small_disk, left)
    told = ""
    try:
        for _ in range(10):
            keeper.step()
    except TableUnavailableError as error:
        told = str(error)
    assert told, "the disk was not full"
    assert "\n" not in told
    ballast.unlink()
    run(keeper)
    assert coordinates(read_table(kind, small_disk)) == good(LONGER)
    leftovers = [path for path in small_disk.rglob("*.tmp") if path.is_file()]
    assert leftovers == []


# -- the catalog --------------------------------------------------------------------------------


def test_a_catalog_that_is_locked_is_waited_for(tmp_path: Path) -> None:
    log = FakeLog({0: (0, 20), 1: (5, 9)})
    keeper = lake_job("iceberg", tmp_path, log)
    run(keeper)
    log.partitions = dict(LOG)
    with closing(sqlite3.connect(tmp_path / "catalog.db", isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(TableUnavailableError, match="OperationalError"):
            keeper.step()
    run(keeper)
    assert coordinates(read_table("iceberg", tmp_path)) == good(LOG)


def test_jobs_that_make_a_catalog_at_once_end_well(tmp_path: Path) -> None:
    """Its own tables are made by whoever is first; the others look again."""
    problems: list[BaseException] = []

    def keep() -> None:
        try:
            keeper = lake_job("iceberg", tmp_path, FakeLog(LOG))
            for _ in range(200):
                try:
                    if keeper.step() is None:
                        return
                except TableUnavailableError:
                    continue
            raise AssertionError("it never ends")
        except BaseException as error:  # noqa: BLE001 -- the test tells
            problems.append(error)

    threads = [threading.Thread(target=keep) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert coordinates(read_table("iceberg", tmp_path)) == good(LOG)


# -- columns, settings, clocks ------------------------------------------------------------------


def test_a_coordinate_that_somebody_dropped_stops_the_job(tmp_path: Path) -> None:
    run(lake_job("iceberg", tmp_path, FakeLog(LOG)))
    with open_catalog(tmp_path).load_table("lake.orders").update_schema() as update:
        update.rename_column("offset", "position")
    with pytest.raises(ForeignTableError, match="lacks offset, which a job has written"):
        run(lake_job("iceberg", tmp_path, FakeLog(LONGER)))
    with open_catalog(tmp_path).load_table("lake.orders").update_schema() as update:
        update.rename_column("position", "offset")
    run(lake_job("iceberg", tmp_path, FakeLog(LONGER)))
    assert coordinates(read_table("iceberg", tmp_path)) == good(LONGER)


def test_a_column_that_somebody_dropped_comes_back_with_new_rows(tmp_path: Path) -> None:
    """The schema has it, and files that are there are read by the names of their columns."""
    run(lake_job("iceberg", tmp_path, FakeLog(LOG)))
    table = open_catalog(tmp_path).load_table("lake.orders")
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.delete_column("name")
    run(lake_job("iceberg", tmp_path, FakeLog(LONGER)))
    found = read_table("iceberg", tmp_path).to_pylist()
    names = {(row["partition"], row["offset"]): row["name"] for row in found}
    assert sorted(names) == good(LONGER)
    assert len(found) == len(names)
    assert names[0, 1] == "n1"
    assert names[0, 80] == "n80"


def test_another_parting_stops_the_job(kind: str, tmp_path: Path) -> None:
    run(lake_job(kind, tmp_path, FakeLog(LOG)))
    with pytest.raises(ForeignTableError, match=r"is partitioned by \[\], the job says"):
        run(lake_job(kind, tmp_path, FakeLog(LONGER), partition_by=["day(timestamp)"]))
    run(lake_job(kind, tmp_path, FakeLog(LONGER)))
    assert coordinates(read_table(kind, tmp_path)) == good(LONGER)


class Behind:
    """A clock on another machine."""

    def __init__(self, behind_ms: float) -> None:
        self.behind_ms = behind_ms

    def now_ms(self) -> int:
        from storage.environment.clock import SystemClock

        return int(SystemClock().now_ms() - self.behind_ms)

    def monotonic_ms(self) -> float:
        return 0.0


def test_a_machine_whose_clock_is_behind_commits_to_no_iceberg_table(tmp_path: Path) -> None:
    """Iceberg's readers in Java refuse a table whose snapshots go back in time."""
    log = FakeLog({0: (0, 20), 1: (5, 9)})
    run(lake_job("iceberg", tmp_path, log))
    sink = open_sink("iceberg", tmp_path)
    sink._clock = Behind(3_600_000)  # type: ignore[attr-defined]  # only this kind has one
    view = sink.view()
    assert view.progress is not None
    assert view.schema is not None
    with pytest.raises(TableUnavailableError, match="clock is 3600 s behind"):
        sink.commit(view, view.schema, (), view.progress.advanced({}))
    sink._clock = Behind(30_000)  # type: ignore[attr-defined]  # as above
    sink.commit(view, view.schema, (), view.progress.advanced({}))


# -- the quarantine -----------------------------------------------------------------------------


def lose_quarantine(kind: str, root: Path) -> None:
    if kind == "iceberg":
        open_catalog(root).drop_table("lake.orders_quarantine")
        shutil.rmtree(next((root / "tables").glob("*/orders_quarantine")))
    else:
        shutil.rmtree(root / "orders_quarantine")


def test_a_quarantine_that_is_lost_stops_the_job(kind: str, tmp_path: Path) -> None:
    """Its records are in no table any more; a person says that the job goes on."""
    run(lake_job(kind, tmp_path, FakeLog(LOG)))
    lose_quarantine(kind, tmp_path)
    for _ in range(2):
        with pytest.raises(ForeignTableError, match="--new-quarantine"):
            run(lake_job(kind, tmp_path, FakeLog(LONGER)))
    run(lake_job(kind, tmp_path, FakeLog(LONGER), new_quarantine=True))
    run(lake_job(kind, tmp_path, FakeLog({0: (0, 120), 1: (5, 33)})))
    assert coordinates(read_table(kind, tmp_path)) == good({0: (0, 120), 1: (5, 33)})


def test_settings_change_between_a_kill_and_the_next_run(kind: str, tmp_path: Path) -> None:
    """Batches, files and tasks of other sizes: the stored plan is followed."""

    class Killed(BaseException):
        pass

    def hook(call: str, after: bool) -> None:
        if call == "commit" and not after:
            raise Killed

    run(lake_job(kind, tmp_path, FakeLog({0: (0, 20), 1: (5, 9)})))
    for size in (700, 1_900, 60_000):
        with pytest.raises(Killed):
            run(lake_job(kind, tmp_path, FakeLog(LOG), hook=hook, max_bytes=size))
    facts = {"target_file_bytes": "1"}
    run(lake_job(kind, tmp_path, FakeLog(LOG), max_bytes=5_000, task_bytes=300, facts=facts))
    assert coordinates(read_table(kind, tmp_path)) == good(LOG)
