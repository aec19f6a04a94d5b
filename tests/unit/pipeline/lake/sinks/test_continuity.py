"""Tables that were lost, copied or put together by somebody: no job begins anew in silence."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline.lake.batch.progress import KEY
from pipeline.lake.errors import ForeignTableError, LakeError, TableUnavailableError
from pipeline.lake.maintain.left_over import Ages
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_bad, rows_of
from tests.fakes.lake.tables import KINDS, coordinates, open_catalog, open_sink, read_table
from tests.fakes.lake.upkeep import lake_upkeep, maintain

LOG = {0: (0, 60), 1: (5, 33)}
LONGER = {0: (0, 90), 1: (5, 33)}


def good(log: dict[int, tuple[int, int]]) -> list[tuple[int, int]]:
    return [one for one in rows_of(log) if not is_bad(one[1])]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def drop(kind: str, root: Path) -> None:
    """The table's record of itself; its files stay."""
    if kind == "iceberg":
        open_catalog(root).drop_table("lake.orders")
    else:
        shutil.rmtree(root / "orders" / {"delta": "_delta_log", "parquet": "_varve"}[kind])


def purge(kind: str, root: Path) -> None:
    """With all its files."""
    drop(kind, root)
    (place,) = [root / "orders"] if kind != "iceberg" else (root / "tables").glob("*/orders")
    shutil.rmtree(place)


def filled(kind: str, root: Path) -> None:
    run(lake_job(kind, root, FakeLog(LOG)))


def test_a_table_that_lost_its_log_is_not_begun_anew(kind: str, tmp_path: Path) -> None:
    filled(kind, tmp_path)
    drop(kind, tmp_path)
    with pytest.raises(ForeignTableError, match=r"files of a job, such as .* Restore it"):
        run(lake_job(kind, tmp_path, FakeLog(LONGER)))
    with pytest.raises(LakeError):
        # Not the second time either.
        run(lake_job(kind, tmp_path, FakeLog(LONGER)))


def test_a_table_whose_files_were_put_together_is_not_begun_anew(kind: str, tmp_path: Path) -> None:
    """Nothing is left in it with the name of a task."""
    filled(kind, tmp_path)
    for _ in range(3):
        maintain(lake_upkeep(kind, tmp_path, ages=Ages(-1000, -1000)))
    drop(kind, tmp_path)
    with pytest.raises(ForeignTableError, match=r"files of a job, such as .*compact-.* Restore it"):
        run(lake_job(kind, tmp_path, FakeLog(LONGER)))


def test_a_table_that_is_gone_altogether_is_made_anew(kind: str, tmp_path: Path) -> None:
    filled(kind, tmp_path)
    purge(kind, tmp_path)
    run(lake_job(kind, tmp_path, FakeLog(LONGER)))
    assert coordinates(read_table(kind, tmp_path)) == good(LONGER)


def test_a_running_job_waits_for_a_table_that_is_gone(kind: str, tmp_path: Path) -> None:
    """It may be the store that is away; dropped on purpose, a job started again makes a new one."""
    log = FakeLog(LOG)
    job = lake_job(kind, tmp_path, log)
    run(job)
    log.partitions = dict(LONGER)
    purge(kind, tmp_path)
    for _ in range(2):
        with pytest.raises(TableUnavailableError, match="was there and is gone"):
            job.step()
    run(lake_job(kind, tmp_path, log))
    assert coordinates(read_table(kind, tmp_path)) == good(LONGER)


def test_a_running_job_goes_on_when_its_table_is_back(kind: str, tmp_path: Path) -> None:
    log = FakeLog(LOG)
    job = lake_job(kind, tmp_path / "here", log)
    run(job)
    log.partitions = dict(LONGER)
    (tmp_path / "here").rename(tmp_path / "away")
    (tmp_path / "here").mkdir()
    with pytest.raises(TableUnavailableError):
        job.step()
    shutil.rmtree(tmp_path / "here")
    (tmp_path / "away").rename(tmp_path / "here")
    run(job)
    assert coordinates(read_table(kind, tmp_path / "here")) == good(LONGER)


def test_a_running_job_fills_no_table_that_was_made_in_the_place_of_its(
    kind: str, tmp_path: Path
) -> None:
    if kind == "parquet":
        pytest.skip("a folder without _varve/ is no table")
    job = lake_job(kind, tmp_path, FakeLog(LOG))
    run(job)
    schema = open_sink(kind, tmp_path).view().schema
    assert schema is not None
    purge(kind, tmp_path)
    if kind == "delta":
        from deltalake import DeltaTable

        DeltaTable.create(str(tmp_path / "orders"), schema)
    else:
        open_catalog(tmp_path).create_table("lake.orders", schema)
    with pytest.raises(ForeignTableError, match="another table than before"):
        job.step()


def copied(kind: str, root: Path, copy: Path) -> None:
    """As files; what is in an Iceberg table are absolute paths, so that one is no copy."""
    for name in ("orders", "orders_quarantine"):
        shutil.copytree(root / name, copy / name)


@pytest.mark.parametrize("kind", ["delta", "parquet"], indirect=True)
def test_a_copy_with_its_log_is_a_table_of_its_own(kind: str, tmp_path: Path) -> None:
    """Two tables with the same job's name have nothing to do with each other."""
    filled(kind, tmp_path)
    copied(kind, tmp_path, tmp_path / "copy")
    log = FakeLog(LONGER)
    for root in (tmp_path / "copy", tmp_path):
        run(lake_job(kind, root, log))
        assert coordinates(read_table(kind, root)) == good(LONGER)


def iceberg(root: Path) -> Any:
    return open_catalog(root).load_table("lake.orders")


def progress_of(snapshot: Any) -> int:
    text = snapshot.summary.get(KEY)
    return -1 if text is None else int(text.partition('"batch": ')[2].partition(",")[0])


@pytest.mark.parametrize("batch", range(4))
def test_a_rolled_back_iceberg_table_is_filled_again(tmp_path: Path, batch: int) -> None:
    filled("iceberg", tmp_path)
    table = iceberg(tmp_path)
    (target,) = (s.snapshot_id for s in table.snapshots() if progress_of(s) == batch)
    table.manage_snapshots().rollback_to_snapshot(target).commit()
    run(lake_job("iceberg", tmp_path, FakeLog(LONGER)))
    assert coordinates(read_table("iceberg", tmp_path)) == good(LONGER)


def test_a_branch_changes_nothing(tmp_path: Path) -> None:
    filled("iceberg", tmp_path)
    table = iceberg(tmp_path)
    old = table.snapshots()[2].snapshot_id
    table.manage_snapshots().create_branch(old, "audit").create_tag(old, "kept").commit()
    run(lake_job("iceberg", tmp_path, FakeLog(LONGER)))
    assert coordinates(read_table("iceberg", tmp_path)) == good(LONGER)


def pick(root: Path, batch: int, *, told: bool) -> None:
    """What Iceberg's cherrypick_snapshot does: the same files, added behind the current one."""
    table = iceberg(root)
    (source,) = (s for s in table.snapshots() if progress_of(s) == batch)
    added = [
        entry.data_file
        for manifest in source.manifests(table.io)
        if manifest.added_snapshot_id == source.snapshot_id
        for entry in manifest.fetch_manifest_entry(table.io)
    ]
    summary = {"source-snapshot-id": str(source.snapshot_id)} if told else {}
    with table.transaction() as transaction:
        update = transaction.update_snapshot(snapshot_properties=summary)
        with update.fast_append() as append:
            for file in added:
                append.append_data_file(file)


@pytest.mark.parametrize("told", [True, False])
def test_a_cherry_picked_snapshot_stops_the_job(tmp_path: Path, told: bool) -> None:
    """Its rows are there and its offsets are not: the job would write them once more."""
    filled("iceberg", tmp_path)
    table = iceberg(tmp_path)
    (first,) = (s.snapshot_id for s in table.snapshots() if progress_of(s) == 1)
    table.manage_snapshots().rollback_to_snapshot(first).commit()
    pick(tmp_path, 3, told=told)
    with pytest.raises(ForeignTableError, match="cherry-picked"):
        run(lake_job("iceberg", tmp_path, FakeLog(LOG)))
    iceberg(tmp_path).manage_snapshots().rollback_to_snapshot(first).commit()
    run(lake_job("iceberg", tmp_path, FakeLog(LOG)))
    assert coordinates(read_table("iceberg", tmp_path)) == good(LOG)


def test_a_delta_table_with_the_rows_of_another_stops_the_job(tmp_path: Path) -> None:
    """What a clone is: properties and files, and no transactions."""
    from deltalake import CommitProperties, DeltaTable
    from deltalake.transaction import AddAction

    filled("delta", tmp_path)
    source = DeltaTable(str(tmp_path / "orders"))
    clone = tmp_path / "clone"
    clone.mkdir()
    shutil.copytree(tmp_path / "orders", clone / "orders", ignore=shutil.ignore_patterns("_*"))
    DeltaTable.create(
        str(clone / "orders"),
        source.schema(),
        configuration=source.metadata().configuration,
        raise_if_key_not_exists=False,
    ).create_write_transaction(
        [
            AddAction(Path(uri).name, Path(uri).stat().st_size, {}, 0, data_change=True, stats="{}")
            for uri in source.file_uris()
        ],
        mode="append",
        schema=source.schema(),
        commit_properties=CommitProperties(),
    )
    with pytest.raises(ForeignTableError, match="would double rows"):
        run(lake_job("delta", clone, FakeLog(LOG)))


# -- Parquet: nothing but `_varve/` says what is the table --------------------------------------


def commits(root: Path) -> list[Path]:
    return sorted((root / "orders" / "_varve" / "commits").iterdir())


def empty(root: Path) -> None:
    for path in (root / "orders").glob("part-*"):
        path.unlink()


def lose_a_file(root: Path) -> None:
    min((root / "orders").glob("part-*")).unlink()


def lose_the_last_commit(root: Path) -> None:
    commits(root)[-1].unlink()


def lose_a_commit(root: Path) -> None:
    commits(root)[2].unlink()


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (empty, "files that its commits name are gone"),
        (lose_a_file, "1 files that its commits name are gone"),
        (lose_the_last_commit, "files behind its last commit"),
        (lose_a_commit, "commit 2 is missing"),
    ],
)
def test_a_folder_that_is_not_whole_stops_the_job(
    tmp_path: Path, damage: Callable[[Path], None], told: str
) -> None:
    filled("parquet", tmp_path)
    before = coordinates(read_table("parquet", tmp_path))
    shutil.copytree(tmp_path / "orders", tmp_path / "kept")
    damage(tmp_path)
    with pytest.raises(ForeignTableError, match=told):
        run(lake_job("parquet", tmp_path, FakeLog(LONGER)))
    shutil.rmtree(tmp_path / "orders")
    (tmp_path / "kept").rename(tmp_path / "orders")
    assert coordinates(read_table("parquet", tmp_path)) == before
    run(lake_job("parquet", tmp_path, FakeLog(LONGER)))
    assert coordinates(read_table("parquet", tmp_path)) == good(LONGER)


def test_what_the_error_says_mends_a_folder_that_lost_its_last_commit(tmp_path: Path) -> None:
    filled("parquet", tmp_path)
    last = commits(tmp_path)[-1]
    last.unlink()
    sink = open_sink("parquet", tmp_path)
    kept = set(sink.keys(sink.view()))
    for path in (tmp_path / "orders").glob("part-*"):
        if path.name not in kept:
            path.unlink()
    run(lake_job("parquet", tmp_path, FakeLog(LONGER)))
    assert coordinates(read_table("parquet", tmp_path)) == good(LONGER)
