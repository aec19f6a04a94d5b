"""What is removed, what never is, and when nothing is."""

import os
from pathlib import Path
from uuid import UUID

import pytest

from pipeline.lake.batch.batch_plan import FOLDER
from pipeline.lake.errors import LakeError, NothingRemovedError
from pipeline.lake.files.data_file import CompactedNames, FileNames
from pipeline.lake.maintain.left_over import Ages
from pipeline.lake.maintain.upkeep import Maintained, Upkeep
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import TOPIC_ID, FakeLog, is_bad, rows_of
from tests.fakes.lake.tables import KINDS, coordinates, open_sink, read_table
from tests.fakes.lake.upkeep import HOUR_MS, AheadClock, lake_upkeep, maintain

LOG = {0: (0, 60), 1: (5, 33)}

GOOD = [one for one in rows_of(LOG) if not is_bad(one[1])]

ALL = Ages(-1000, -1000)
"""Everything is old."""


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def table(kind: str, tmp_path: Path) -> Path:
    """A table of a job, and its folder."""
    run(lake_job(kind, tmp_path, FakeLog(LOG)))
    return Path(open_sink(kind, tmp_path).store.uri.removeprefix("file://"))


def tidy(upkeep: Upkeep) -> list[Maintained]:
    """Without putting files together."""
    return upkeep.run([], None)


def part(start: int, end: int, *, topic_id: UUID = TOPIC_ID, folder: str = "") -> str:
    return FileNames(folder, "orders", topic_id, 0, start, end, "ffffffff").key((), 0)


def put(table: Path, kind: str, name: str, *, hours: float = 0) -> Path:
    path = table / ("data" if kind == "iceberg" else "") / name
    path.write_bytes(b"left behind")
    age(path, hours)
    return path


def age(path: Path, hours: float) -> None:
    seconds = path.stat().st_mtime - hours * 3600
    os.utime(path, (seconds, seconds))


def test_files_of_no_commit_go_when_they_are_old(kind: str, tmp_path: Path, table: Path) -> None:
    compacted = CompactedNames("", "orders", TOPIC_ID.hex[:8], "a" * 32).key((), 0)
    old = [
        put(table, kind, part(0, 10), hours=2),
        put(table, kind, compacted, hours=2),
        put(table, kind, f".{part(0, 10)}.{'a' * 32}.tmp", hours=2),
    ]
    young = put(table, kind, part(10, 17), hours=0.5)
    rows, _ = tidy(lake_upkeep(kind, tmp_path))
    assert rows.orphans == len(old)
    assert rows.removed_bytes == 11 * len(old)
    assert not any(path.exists() for path in old)
    assert young.exists()
    assert coordinates(read_table(kind, tmp_path)) == GOOD


def test_what_a_job_may_still_need_stays_whatever_its_age(
    kind: str, tmp_path: Path, table: Path
) -> None:
    """A batch that is planned and not committed; one whose commit somebody has lost, maybe."""
    beyond = put(table, kind, part(60, 70), hours=9999)
    other = put(table, kind, part(0, 10, topic_id=UUID(int=99)), hours=9999)
    rows, _ = tidy(lake_upkeep(kind, tmp_path))
    assert rows.orphans == 0
    assert beyond.exists()
    assert other.exists()


def test_files_that_are_not_of_the_table_stay_and_are_named(
    kind: str, tmp_path: Path, table: Path
) -> None:
    mine = put(table, kind, "mine.parquet", hours=9999)
    rows, _ = tidy(lake_upkeep(kind, tmp_path, ages=ALL))
    assert mine.exists()
    assert rows.others == (str(mine.relative_to(table)),)


def test_an_unfinished_batch_goes_on_after_upkeep(kind: str, tmp_path: Path) -> None:
    """Its plan and its files are days old: the job stood still."""
    run(lake_job(kind, tmp_path, FakeLog({0: (0, 30)})))

    class Killed(BaseException):
        pass

    def kill(call: str, after: bool) -> None:
        if call == "commit":
            raise Killed

    log = FakeLog({0: (0, 60)})
    with pytest.raises(Killed):
        run(lake_job(kind, tmp_path, log, hook=kill))
    store = open_sink(kind, tmp_path).store
    before = {file.key for file in store.list("")}
    plans = list(store.list(FOLDER))
    assert plans
    # The next batch is planned, its files are there, those of the quarantine may be.
    tidy(lake_upkeep(kind, tmp_path, ages=ALL))
    after = {file.key for file in store.list("")}
    assert {key for key in before - after if "part-" in key or key.startswith(FOLDER)} == set()
    run(lake_job(kind, tmp_path, log))
    rows = [one for one in rows_of({0: (0, 60)}) if not is_bad(one[1])]
    assert coordinates(read_table(kind, tmp_path)) == rows


def test_old_plans_go(kind: str, tmp_path: Path, table: Path) -> None:
    """A job could not remove them, or another one has stored them behind it."""
    store = open_sink(kind, tmp_path).store
    job = lake_job(kind, tmp_path, FakeLog({0: (0, 90), 1: (5, 33)}))

    class Killed(BaseException):
        pass

    def kill(call: str, after: bool) -> None:
        if call == "publish":
            raise Killed

    with pytest.raises(Killed):
        run(lake_job(kind, tmp_path, FakeLog({0: (0, 90), 1: (5, 33)}), hook=kill))
    (plan,) = list(store.list(FOLDER))
    data = store.get(plan.key)
    assert data is not None
    run(job)
    store.put(plan.key, data)
    rows, _ = tidy(lake_upkeep(kind, tmp_path))
    assert rows.plans == 0
    rows, _ = tidy(lake_upkeep(kind, tmp_path, ages=ALL))
    assert rows.plans == 1
    assert not list(store.list(FOLDER))


def nothing(kind: str, tmp_path: Path, table: Path, match: str) -> None:
    """Nothing is removed, and the sentence says why."""
    before = sorted(path for path in table.rglob("*.parquet"))
    with pytest.raises(LakeError, match=match):
        tidy(lake_upkeep(kind, tmp_path, ages=ALL))
    gone = set(before) - set(table.rglob("*.parquet"))
    assert {path for path in gone if "_delta_log" not in str(path)} == set()


def test_nothing_goes_while_a_file_of_the_table_is_missing(
    kind: str, tmp_path: Path, table: Path
) -> None:
    """Somebody looks at another place, or has restored half of a table."""
    put(table, kind, part(0, 10), hours=9999)
    sink = open_sink(kind, tmp_path)
    (table / sink.keys(sink.view())[0]).unlink()
    nothing(kind, tmp_path, table, "nothing is removed.*is of the table, and is not there")


def test_nothing_goes_while_a_plan_cannot_be_read(kind: str, tmp_path: Path, table: Path) -> None:
    put(table, kind, part(0, 10), hours=9999)
    open_sink(kind, tmp_path).store.put(f"{FOLDER}x.json", b'{"version": 9}')
    nothing(kind, tmp_path, table, "nothing is removed.*version 9")


def test_nothing_goes_while_a_commit_log_has_a_hole(tmp_path: Path) -> None:
    for kind, folder, suffix in (
        ("delta", "orders/_delta_log", ".json"),
        ("parquet", "orders/_varve/commits", ".json"),
    ):
        root = tmp_path / kind
        run(lake_job(kind, root, FakeLog(LOG)))
        commits = sorted(path for path in (root / folder).iterdir() if path.suffix == suffix)
        assert len(commits) > 3
        commits[2].unlink()
        put(root / "orders", kind, part(0, 10), hours=9999)
        nothing(kind, root, root / "orders", "Gap|gap|contiguous|missing|Kernel|not there")


def test_nothing_goes_while_a_manifest_cannot_be_read(tmp_path: Path) -> None:
    run(lake_job("iceberg", tmp_path, FakeLog(LOG)))
    table = Path(open_sink("iceberg", tmp_path).store.uri.removeprefix("file://"))
    put(table, "iceberg", part(0, 10), hours=9999)
    maintain(lake_upkeep("iceberg", tmp_path))
    # One that only an older snapshot has: the current table can be read.
    oldest = min(table.glob("metadata/*-m0.avro"), key=lambda path: path.stat().st_mtime)
    oldest.write_bytes(oldest.read_bytes()[:40])
    before = set(table.rglob("*"))
    with pytest.raises(LakeError, match=r"manifest .* cannot be read"):
        tidy(lake_upkeep("iceberg", tmp_path, ages=Ages(HOUR_MS, -1000)))
    assert set(table.glob("data/*")) == {path for path in before if path.parent.name == "data"}


@pytest.mark.parametrize("ahead_h", [-48, 48])
def test_a_machine_whose_clock_is_wrong_removes_nothing_that_is_young(
    kind: str, tmp_path: Path, table: Path, ahead_h: int
) -> None:
    """Files have the store's time, and so has what they are compared with."""
    young = put(table, kind, part(0, 10), hours=0.5)
    old = put(table, kind, part(10, 17), hours=2)
    maintain(lake_upkeep(kind, tmp_path))
    upkeep = lake_upkeep(kind, tmp_path, clock=AheadClock(ahead_h * HOUR_MS))
    before = open_sink(kind, tmp_path)
    states = len(before.keys(before.view()))
    rows, _ = tidy(upkeep)
    assert rows.expired == 0
    assert young.exists()
    assert not old.exists()
    assert len(before.keys(before.view())) == states
    assert coordinates(read_table(kind, tmp_path)) == GOOD


def test_a_dry_run_changes_nothing_and_tells_all(kind: str, tmp_path: Path, table: Path) -> None:
    put(table, kind, part(0, 10), hours=2)
    before = {path: path.stat().st_mtime for path in tmp_path.rglob("*") if path.is_file()}
    upkeep = lake_upkeep(kind, tmp_path)
    rows, _ = upkeep.run(upkeep.groups(), None, dry_run=True)
    after = {path: path.stat().st_mtime for path in tmp_path.rglob("*") if path.is_file()}
    assert after == before
    assert (rows.groups, rows.orphans, rows.compacted.made) == (1, 1, 0)


def test_nothing_removed_is_an_error_that_a_person_has_to_see() -> None:
    from pipeline.lake.errors import JobStopError

    assert issubclass(NothingRemovedError, JobStopError)
