"""Runs by their seeds, and that a run can fail: the rules, shrinking, the command of a failure."""

from itertools import count
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from storage.log.log import Log
from storage.producers.entry import BatchMetadata
from tests.effort import examples, swept
from tests.unit.storage.crash_fuzz import runner
from tests.unit.storage.crash_fuzz.__main__ import main
from tests.unit.storage.crash_fuzz.machine import Machine
from tests.unit.storage.crash_fuzz.rules import RuleBroken
from tests.unit.storage.crash_fuzz.runner import Drawn, describe, draw_steps, failure_of, shrink


@pytest.mark.parametrize("seed", swept(range(1, 41), 8))
def test_a_seed_breaks_no_rule(seed: int) -> None:
    """The same ones in every run."""
    steps = draw_steps(seed)
    failure = failure_of(seed, steps)
    assert failure is None, describe(seed, steps, failure)


@pytest.mark.slow
@given(st.integers(1_000_000, 1_000_000_000))
@settings(examples(3000), phases=(Phase.generate,))
def test_no_seed_breaks_a_rule(seed: int) -> None:
    """Others in every deep run; a failure is made small, and says how it is repeated."""
    steps = draw_steps(seed)
    failure = failure_of(seed, steps)
    if failure is not None:
        small = shrink(seed, steps)
        raise AssertionError(describe(seed, small, failure_of(seed, small) or failure))


def machine_with_records() -> tuple[Machine, Log]:
    """All of it on disk, with a transaction that is open, and judged."""
    machine = Machine(1)
    runner.do(machine, "create", Random(1))
    (log,) = machine.manager.logs()
    numbers = count()
    while log.log_end_offset < 9 or log.producer_state.first_undecided_offset is None:
        runner.do(machine, "append", Random(next(numbers)))
    log.flusher.flush()
    log.update_high_watermark(log.log_end_offset)
    machine.note_durable()
    return machine, log


def lose_the_end(log: Log) -> None:
    log.truncation.truncate_to(log.log_end_offset - 1)


def lose_the_start(log: Log) -> None:
    log.delete_records(3)


def mistake_an_epoch(log: Log) -> None:
    log.leader_epochs.replace([(7, 0)])
    log.load_latest_epoch()


def forget_a_producer(log: Log) -> None:
    log.producer_state._producers.clear()


def invent_a_sequence(log: Log) -> None:
    for entry in log.producer_state._producers.values():
        entry.batches[:] = [BatchMetadata(99, 1, 0, 0)]


def serve_what_is_open(log: Log) -> None:
    log.producer_state.first_unstable_offset = None


def change_a_record(log: Log) -> None:
    file = log.segment_facts()[0].open_file()
    file.write_at(b"\xff", 70)


@pytest.mark.parametrize(
    ("damage", "rule"),
    [
        (lose_the_end, "nothing lost"),
        (lose_the_start, "log start"),
        (mistake_an_epoch, "leader epochs"),
        (forget_a_producer, "producers"),
        (invent_a_sequence, "producers"),
        (serve_what_is_open, "read_committed"),
        (change_a_record, "nothing else"),
    ],
)
def test_the_judge_says_which_rule_is_broken(damage: object, rule: str) -> None:
    machine, log = machine_with_records()
    machine.judge_all()
    assert callable(damage)
    damage(log)
    with pytest.raises(RuleBroken, match=f"^{rule}: "):
        machine.judge_all()


def test_a_failing_run_is_made_small_and_can_be_repeated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A flush that syncs nothing: what is left is what it takes to see that."""
    monkeypatch.setattr("storage.segment.flush.FlushTicket.run", lambda _ticket: None)
    assert main(["--seed", "1", "--runs", "40"]) == 1
    said = capsys.readouterr().out
    command = next(line for line in said.splitlines() if "--steps" in line)
    words = command.partition('--steps "')[2].rstrip('"')
    steps = runner.parse_steps(words)
    assert len(steps) < 12
    seed = command.partition("--seed ")[2].split()[0]
    with pytest.raises(RuleBroken, match=": "):
        main(["--seed", seed, "--steps", words])


def test_a_run_of_given_steps_goes_well(capsys: pytest.CaptureFixture[str]) -> None:
    words = " ".join(map(str, [Drawn("create", 1), Drawn("append", 2), Drawn("cut", 3)]))
    assert main(["--seed", "1", "--steps", words]) == 0
    assert capsys.readouterr().out == ""
