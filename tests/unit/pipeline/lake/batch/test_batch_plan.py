"""Plans: how offsets are cut into tasks, and that a stored plan is the one to follow."""

from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lake.batch.batch_plan import (
    FOLDER,
    BatchPlan,
    PlanShelf,
    Span,
    TaskRange,
    choose_tasks,
    decode_plan,
    encode_plan,
    fingerprint_of,
)
from pipeline.lake.batch.progress import Progress
from pipeline.lake.errors import ForeignTableError
from tests.fakes.lake.tables import open_directory

BASE = Progress("job", "orders", UUID(int=7), 4, {0: 10, 1: 0})
PLAN = BatchPlan("0a1b2c3d", BASE, (TaskRange(0, 10, 20), TaskRange(0, 20, 25), TaskRange(1, 0, 3)))


@st.composite
def logs(draw: st.DrawFn) -> dict[int, list[Span]]:
    found: dict[int, list[Span]] = {}
    for partition in range(draw(st.integers(0, 4))):
        position = draw(st.integers(0, 5))
        spans = []
        for _ in range(draw(st.integers(0, 5))):
            position += draw(st.sampled_from([0, 0, 3]))
            count = draw(st.integers(1, 50))
            spans.append(Span(position, position + count, draw(st.integers(0, 5000))))
            position += count
        found[partition] = spans
    return found


@given(logs(), st.integers(1, 10_000), st.integers(1, 3_000))
def test_tasks_are_a_part_of_each_log_from_its_start_without_gaps(
    spans: dict[int, list[Span]], max_bytes: int, task_bytes: int
) -> None:
    """Each offset once, ascending; and something of every partition that has anything."""
    tasks = choose_tasks(spans, max_bytes=max_bytes, task_bytes=task_bytes)
    for partition, some in spans.items():
        wanted = [offset for span in some for offset in range(span.start, span.end)]
        taken = [o for t in tasks if t.partition == partition for o in range(t.start, t.end)]
        assert taken == wanted[: len(taken)]
        assert bool(taken) == bool(wanted)


@given(logs(), st.integers(1, 3_000))
def test_with_room_for_all_everything_is_taken(
    spans: dict[int, list[Span]], task_bytes: int
) -> None:
    tasks = choose_tasks(spans, max_bytes=10**9, task_bytes=task_bytes)
    wanted = sum(span.end - span.start for some in spans.values() for span in some)
    assert sum(task.end - task.start for task in tasks) == wanted


def test_a_batch_stays_below_its_bytes_and_shares_them() -> None:
    spans = {0: [Span(0, 1000, 100_000)], 1: [Span(0, 3000, 300_000)]}
    tasks = choose_tasks(spans, max_bytes=40_000, task_bytes=8_000)
    assert {t.partition: t.end for t in tasks} == {0: 100, 1: 300}
    assert len([t for t in tasks if t.partition == 1]) == 4


def test_a_stored_plan_is_read_again() -> None:
    assert decode_plan(encode_plan(PLAN)) == PLAN
    assert PLAN.starts() == {0: 10, 1: 0}
    assert PLAN.ends() == {0: 25, 1: 3}


@given(st.binary(max_size=40))
def test_anything_else_is_no_plan(data: bytes) -> None:
    with pytest.raises(ForeignTableError):
        decode_plan(data)


def test_a_plan_without_offsets_is_refused() -> None:
    with pytest.raises(ForeignTableError):
        decode_plan(encode_plan(PLAN._replace(tasks=(TaskRange(0, 5, 5),))))


def test_the_first_plan_stored_is_the_one_to_follow(tmp_path: Path) -> None:
    """Of two jobs at once, both take one and the same."""
    shelf = PlanShelf(open_directory(str(tmp_path)))
    assert shelf.find(PLAN.fingerprint, BASE) is None
    assert shelf.put(PLAN) == PLAN
    other = PLAN._replace(tasks=(TaskRange(0, 10, 99),))
    assert shelf.put(other) == PLAN
    assert shelf.find(PLAN.fingerprint, BASE) == PLAN


def test_other_settings_keep_the_tasks_and_take_another_fingerprint(tmp_path: Path) -> None:
    """Offsets that the quarantine may have committed must not be cut otherwise."""
    shelf = PlanShelf(open_directory(str(tmp_path)))
    shelf.put(PLAN)
    found = shelf.find("ffffffff", BASE)
    assert found == PLAN._replace(fingerprint="ffffffff")
    assert shelf.find("ffffffff", BASE) == found


def test_a_plan_of_another_state_of_the_table_is_not_taken(tmp_path: Path) -> None:
    """A table that was rolled back has the same batch number again, and other offsets."""
    shelf = PlanShelf(open_directory(str(tmp_path)))
    shelf.put(PLAN)
    assert shelf.find(PLAN.fingerprint, BASE._replace(offsets={0: 11})) is None
    assert shelf.find(PLAN.fingerprint, BASE._replace(topic_id=UUID(int=8))) is None


def test_plans_of_a_committed_batch_go(tmp_path: Path) -> None:
    store = open_directory(str(tmp_path))
    shelf = PlanShelf(store)
    shelf.put(PLAN)
    shelf.put(PLAN._replace(base=BASE._replace(batch=5)))
    shelf.forget(BASE)
    assert len(list(store.list(FOLDER))) == 1
    assert shelf.find(PLAN.fingerprint, BASE) is None


def test_a_fingerprint_follows_its_facts() -> None:
    assert fingerprint_of({"a": "1", "b": "2"}) == fingerprint_of({"b": "2", "a": "1"})
    assert fingerprint_of({"a": "1"}) != fingerprint_of({"a": "2"})
