"""What a job may still need of the files that no commit has."""

from uuid import UUID

import pytest

from pipeline.lake.batch.batch_plan import BatchPlan, TaskRange, encode_plan
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import ForeignTableError
from pipeline.lake.files.data_file import BucketNames, CompactedNames, FileNames
from pipeline.lake.maintain.unfinished import StoredPlan, Unfinished, stored_plans
from pipeline.lake.stores.table_store import StoredFile
from tests.fakes.lake.numbers_log import TOPIC_ID
from tests.fakes.lake.tables import open_directory

OTHER_ID = UUID(int=99)
PROGRESS = Progress("orders-lake", "orders", TOPIC_ID, 4, {0: 100, 1: 50})


def name(start: int, end: int, *, topic_id: UUID = TOPIC_ID, fingerprint: str = "0a1b2c3d") -> str:
    return FileNames("", "orders", topic_id, 0, start, end, fingerprint).key((), 0)


def plan(base: Progress, *tasks: TaskRange, fingerprint: str = "0a1b2c3d") -> StoredPlan:
    found = BatchPlan(fingerprint, base, tasks)
    return StoredPlan(StoredFile(found.key(), 1, 0), found)


def test_what_the_table_has_passed_is_left_over() -> None:
    unfinished = Unfinished(PROGRESS, (), ())
    assert unfinished.is_left_over(name(0, 100))
    assert not unfinished.is_left_over(name(0, 101))
    assert not unfinished.is_left_over(name(100, 110))


def test_a_partition_that_the_table_does_not_know_is_not_passed() -> None:
    key = FileNames("", "orders", TOPIC_ID, 7, 0, 1, "0a1b2c3d").key((), 0)
    assert not Unfinished(PROGRESS, (), ()).is_left_over(key)


def test_files_of_a_stored_plan_are_needed_under_any_settings() -> None:
    """Who repeats it has the same tasks; a rolled back table may be at its base again."""
    stored = plan(PROGRESS, TaskRange(0, 90, 100))
    unfinished = Unfinished(PROGRESS, (), [stored])
    assert not unfinished.is_left_over(name(90, 100))
    assert not unfinished.is_left_over(name(90, 100, fingerprint="ffffffff"))
    assert unfinished.is_left_over(name(80, 90))


def test_a_plan_that_the_table_has_passed_protects_nothing() -> None:
    stored = plan(PROGRESS._replace(batch=3), TaskRange(0, 90, 100))
    unfinished = Unfinished(PROGRESS, (), [stored])
    assert unfinished.has_passed(stored.plan)
    assert unfinished.is_left_over(name(90, 100))
    assert not unfinished.has_passed(plan(PROGRESS).plan)
    assert not unfinished.has_passed(plan(PROGRESS._replace(batch=5)).plan)


def test_of_a_topic_that_the_table_has_no_rows_of_nothing_is_left_over() -> None:
    """The table may have been restored to a state from before that topic was made."""
    other = name(0, 10, topic_id=OTHER_ID)
    stored = plan(PROGRESS._replace(topic_id=OTHER_ID, batch=0), TaskRange(0, 0, 10))
    unfinished = Unfinished(PROGRESS, (), [stored])
    assert not unfinished.is_left_over(other)
    assert not unfinished.has_passed(stored.plan)
    known = Unfinished(PROGRESS, [name(10, 20, topic_id=OTHER_ID)], [stored])
    assert known.has_passed(stored.plan)
    assert known.is_left_over(name(20, 90_000, topic_id=OTHER_ID))


def test_files_put_together_that_nobody_has_are_left_over() -> None:
    key = CompactedNames("", "orders", TOPIC_ID.hex[:8], "f" * 32).key((), 0)
    assert Unfinished(PROGRESS, (), ()).is_left_over(key)


def test_a_key_buckets_file_of_a_later_batch_is_needed() -> None:
    unfinished = Unfinished(PROGRESS, (), ())
    names = BucketNames("", "orders", TOPIC_ID, 3, 4, "0a1b2c3d")
    assert unfinished.is_left_over(names.key((), 0))
    assert not unfinished.is_left_over(names._replace(batch=5).key((), 0))


def test_other_names_are_never_left_over() -> None:
    unfinished = Unfinished(PROGRESS, (), ())
    for key in ("mine.parquet", "part-0.parquet", "_varve/commits/0.json"):
        assert not unfinished.is_left_over(key)


def test_a_plan_that_cannot_be_read_is_told(tmp_path: object) -> None:
    """What it protects is not known."""
    store = open_directory(str(tmp_path))
    good = plan(PROGRESS, TaskRange(0, 90, 100)).plan
    store.put(good.key(), encode_plan(good))
    assert [one.plan for one in stored_plans(store)] == [good]
    store.put("_varve/plans/0-x.json", b"{")
    with pytest.raises(ForeignTableError, match=r"0-x\.json"):
        stored_plans(store)
