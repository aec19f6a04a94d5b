"""One row per topic."""

from tiered.tasks.task_counters import TaskCounters


def test_rows_are_made_kept_and_forgotten() -> None:
    counters = TaskCounters()
    counters.of("t").copy_requests += 1
    assert counters.of("t").copy_requests == 1
    counters.forget("t")
    counters.forget("u")
    assert counters.of("t").copy_requests == 0
