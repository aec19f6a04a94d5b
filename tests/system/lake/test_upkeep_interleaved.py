"""A job, upkeep, replays and kills in any order, one within the other: rows and offsets hold.

Whatever happens at a step of one of them (a commit, a read, a list) is chosen: nothing, its death,
or that another one does its whole work in between.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from typing_extensions import override

from pipeline.lake.errors import CommitConflictError
from pipeline.lake.files.file_writer import WriterOptions
from pipeline.lake.job.quarantine import Replay
from pipeline.lake.maintain.left_over import Ages
from pipeline.lake.schemas.spec import ConverterSpec, FieldSpec
from pipeline.lake.work.task import TableTarget, TaskSpec
from tests.fakes.lake.hooks import Hook, HookedSink
from tests.fakes.lake.jobs import FIELDS, SPEC, FixedColumns, lake_job, run
from tests.fakes.lake.numbers_log import FakeLog, is_bad, rows_of
from tests.fakes.lake.tables import KINDS, OpenDirectory, coordinates, open_sink, read_table
from tests.fakes.lake.upkeep import HOURLY, lake_upkeep, maintain

STRICT = ConverterSpec(FieldSpec("json", fields=FIELDS, max_value_bytes=24), FieldSpec("raw"))
"""Records of an offset of two digits or more do not fit; a replay with `SPEC` takes them."""

STEPS = st.integers(0, 60)


class Killed(BaseException):
    """As a signal: nobody catches it."""


def nothing(_: str, __: bool) -> None:
    """No hook."""


class At:
    """Does something once, at a step."""

    def __init__(self, step: int, then: Callable[[], object]) -> None:
        self.left = step
        self.then = then

    def __call__(self, call: str, after: bool) -> None:
        if self.left == 0:
            self.left = -1
            self.then()
        self.left -= 1


def die() -> None:
    raise Killed


class Lake(RuleBasedStateMachine):
    """One table, its quarantine, and all that is done to them."""

    kind = "parquet"

    @initialize()
    def begin(self) -> None:
        self.folder = TemporaryDirectory(prefix="maintain-")
        self.root = Path(self.folder.name)
        self.log = FakeLog({0: (0, 30), 1: (5, 9)})
        self.offsets: dict[int, int] = {}
        self.sleeper = lake_job(self.kind, self.root, self.log, spec=STRICT)
        run(lake_job(self.kind, self.root, self.log, spec=STRICT))

    # -- what is done ----------------------------------------------------------------------------

    def job(self, hook: Hook = nothing) -> None:
        run(lake_job(self.kind, self.root, self.log, spec=STRICT, hook=hook))

    def upkeep(self, hook: Hook = nothing, ages: Ages = HOURLY) -> None:
        # Where others were faster all the time, its own try is over.
        with suppress(CommitConflictError):
            maintain(lake_upkeep(self.kind, self.root, hook=hook, ages=ages))

    def replay(self, hook: Hook = nothing) -> None:
        sink = HookedSink(open_sink(self.kind, self.root), hook)
        bad = HookedSink(open_sink(self.kind, self.root, name="orders_quarantine"), hook)

        def targets(converter: ConverterSpec) -> TaskSpec:
            return TaskSpec(
                TableTarget(OpenDirectory(sink.store.uri), sink.folder, WriterOptions()),
                TableTarget(OpenDirectory(bad.store.uri), bad.folder, WriterOptions()),
                converter,
            )

        Replay(sink, bad, FixedColumns(SPEC), targets).run()

    # -- rules -----------------------------------------------------------------------------------

    @rule(rows=st.integers(1, 25), partition=st.sampled_from([0, 1, 2]))
    def log_grows(self, rows: int, partition: int) -> None:
        start, end = self.log.partitions.get(partition, (0, 0))
        self.log.partitions[partition] = (start, end + rows)

    @rule()
    def job_runs(self) -> None:
        self.job()

    @rule()
    def job_that_slept_goes_on(self) -> None:
        """What it knew of the table is from before all that was done since."""
        self.sleeper.step()

    @rule()
    def upkeep_runs(self) -> None:
        self.upkeep()

    @rule()
    def upkeep_runs_after_a_long_time(self) -> None:
        """Everything is old by now."""
        self.upkeep(ages=Ages(-1000, -1000))

    @rule()
    def quarantine_is_replayed(self) -> None:
        self.replay()

    @rule(step=STEPS, who=st.sampled_from(["job", "upkeep", "replay"]))
    def one_dies(self, step: int, who: str) -> None:
        with suppress(Killed):
            getattr(self, who)(At(step, die))

    @rule(
        step=STEPS,
        who=st.sampled_from(["job", "upkeep", "replay"]),
        other=st.sampled_from(["job", "upkeep", "replay"]),
    )
    def one_does_its_work_within_another(self, step: int, who: str, other: str) -> None:
        getattr(self, who)(At(step, getattr(self, other)))

    # -- what holds ------------------------------------------------------------------------------

    @invariant()
    def every_row_is_there_once(self) -> None:
        if not hasattr(self, "root"):
            return
        progress = open_sink(self.kind, self.root).view().progress
        assert progress is not None
        for partition, offset in self.offsets.items():
            assert progress.offsets[partition] >= offset
        self.offsets = dict(progress.offsets)
        starts = {number: start for number, (start, _) in self.log.partitions.items()}
        committed = {n: (starts[n], end) for n, end in progress.offsets.items()}
        rows = coordinates(read_table(self.kind, self.root))
        assert len(rows) == len(set(rows))
        held = coordinates(read_table(self.kind, self.root, "orders_quarantine"))
        assert len(held) == len(set(held))
        # A replay that died has left rows in both.
        assert sorted({*rows, *held}) == rows_of(committed)

    @override
    def teardown(self) -> None:
        if not hasattr(self, "root"):
            return
        self.job()
        self.replay()
        self.upkeep(ages=Ages(-1000, -1000))
        self.every_row_is_there_once()
        rows = coordinates(read_table(self.kind, self.root))
        assert rows == [one for one in rows_of(self.log.partitions) if not is_bad(one[1])]
        sink = open_sink(self.kind, self.root)
        found = {f.key for f in sink.store.list("") if ".parquet" in f.key and f.key[0] != "_"}
        assert found == set(sink.keys(sink.view()))
        self.folder.cleanup()


def in_any_order(kind: str, examples: int, steps: int) -> None:
    machine = type(f"Lake_{kind}", (Lake,), {"kind": kind})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_offsets_hold_in_any_order(kind: str) -> None:
    in_any_order(kind, 4, 6)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_offsets_hold_in_many_orders(kind: str) -> None:
    in_any_order(kind, 60, 20)
