"""A run holds what clients were told against the logs, and finds what a broker has lost."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.clients.groups import Committed, GroupHistory
from tests.simulation.clients.history import History
from tests.simulation.clients.keys import SETTINGS, KeyHistory, Written
from tests.simulation.clients.losses import PLACE as LOSSY
from tests.simulation.clients.losses import LossHistory
from tests.simulation.clients.shares import DELIVERIES_MAX, ShareHistory
from tests.simulation.clients.transactions import Outcome, TransactionHistory
from tests.simulation.faults.nemesis import (
    DIRECTORY_KINDS,
    KINDS,
    LOSSY_KINDS,
    SYNCED_KINDS,
    Fault,
    draw_plan,
    quiet_times,
)
from tests.simulation.run import run
from tests.simulation.shape import Shape
from tests.simulation.stage import Stage
from tests.simulation.world import Place, Violation

ONE = Shape(brokers=1, replicas=1, min_in_sync=1)
PLACE = Place("t", 0)
ROOT = Path(__file__).parents[2]
RULES = {"epoch_kept_over_restart": ("I1",), "acked_at_append": ("A", "I2", "I3")}


def test_a_broker_serves_what_clients_write_and_a_seed_repeats_it() -> None:
    first, second = run(5, 10, shape=ONE, plan=[]), run(5, 10, shape=ONE, plan=[])
    assert first.violation is None
    assert first.acked > 100
    assert first.read > 100
    assert (first.trace, first.handles, first.acked) == (second.trace, second.handles, second.acked)


def test_a_plan_follows_from_its_seed() -> None:
    plan = draw_plan(1, 3, 600)
    assert plan == draw_plan(1, 3, 600)
    assert plan != draw_plan(2, 3, 600)
    assert len(plan) > 50
    assert len({fault.kind for fault in plan}) > 8
    assert all(fault.target != fault.other for fault in plan)


def test_between_episodes_of_faults_is_quiet_time() -> None:
    plan = draw_plan(1, 3, 3600, quiet=True)
    times = quiet_times(plan, 3600)
    assert len(times) > 5
    assert all(start_s < end_s for start_s, end_s in times)
    assert 0.6 < sum(end_s - start_s for start_s, end_s in times) / 3600 < 0.95
    for fault in plan:
        assert not any(start_s <= fault.at_s <= end_s for start_s, end_s in times)


@pytest.mark.system
def test_quiet_time_costs_little_and_nothing_is_missed_after_it() -> None:
    shape = Shape(has_quiet_times=True)
    plan = [Fault(5, "kill", 1, 2, 3, 0), Fault(300, "kill", 2, 1, 3, 0)]
    outcome = run(3, 320, shape=shape, plan=plan)
    assert outcome.violation is None
    assert outcome.virtual_s > 320
    # Clients work around both faults, and hardly between them.
    assert 100 < outcome.acked < 2500
    assert outcome.handles < 320 * 300


@pytest.mark.system
def test_it_is_not_quiet_while_a_script_takes_longer_than_its_fault() -> None:
    plan = [Fault(5.0, "leader in doubt", 1, 2, 0.1, 5)]
    outcome = run(6, 60.0, shape=Shape(has_quiet_times=True), plan=plan)
    assert outcome.violation is None
    began_s, ended_s = (float(line.split()[0]) for line in outcome.done)
    assert ended_s - began_s > 8.0
    assert 0.0 < outcome.quiet_s < 60.0 - 3.0 - 5.0 - (ended_s - began_s)


def test_every_kind_of_fault_is_drawn() -> None:
    drawn = {fault.kind for seed in range(20) for fault in draw_plan(seed, 3, 600)}
    assert drawn == set(KINDS)
    more = {
        fault.kind
        for seed in range(20)
        for fault in draw_plan(seed, 3, 600, directories=2, lossy=True, synced=True)
    }
    assert more == {*KINDS, *DIRECTORY_KINDS, *LOSSY_KINDS, *SYNCED_KINDS}


def test_a_mark_shows_the_same_batches_as_a_look_from_the_start() -> None:
    with Stage() as stage:
        stage.write(2)
        place, world, node = stage.place, stage.world, stage.leader
        first, mark = world.batches_from(None, node, place, 0, stage.end(node))
        assert len(first) == 1
        stage.write(3)
        end = stage.end(node)
        whole = world.batches(node, place, 0, end)
        assert len(whole) == 2
        later, _ = world.batches_from(mark, node, place, mark.offset, end)
        assert {**first, **later} == whole
        # Where another batch lies by now, a mark is not believed.
        astray = mark._replace(position=7)
        assert world.batches_from(astray, node, place, mark.offset, end)[0] == later


def test_a_lost_record_is_found() -> None:
    history = History()
    history.ack(PLACE, 0, [b"idempotent-0", b"idempotent-1"])
    history.judge(PLACE, {0: b"idempotent-0", 1: b"idempotent-1"})
    with pytest.raises(Violation, match="offset 1: acknowledged"):
        history.judge(PLACE, {0: b"idempotent-0"})


def test_a_record_acknowledged_as_a_repeated_one_is_looked_for() -> None:
    history = History()
    history.ack(PLACE, -1, [b"idempotent-0"])
    with pytest.raises(Violation, match="lost 1 acknowledged"):
        history.judge(PLACE, {0: b"idempotent-1"})


def test_doubled_records_and_a_wrong_order_are_found() -> None:
    history = History()
    with pytest.raises(Violation, match="doubled or out of order"):
        history.judge(PLACE, {0: b"idempotent-0", 1: b"idempotent-0"})
    with pytest.raises(Violation, match="doubled or out of order"):
        history.judge(PLACE, {0: b"idempotent-1", 1: b"idempotent-0"})


def test_a_record_that_changes_after_it_was_read_is_found() -> None:
    history = History()
    history.saw(PLACE, 3, b"idempotent-0")
    with pytest.raises(Violation, match="offset 3"):
        history.saw(PLACE, 3, b"idempotent-1")
    with pytest.raises(Violation, match="was read as"):
        history.ack(PLACE, 3, [b"idempotent-1"])


@pytest.mark.parametrize("seed", [2, pytest.param(7, marks=pytest.mark.system)])
def test_three_brokers_hold_every_promise_through_faults(seed: int) -> None:
    """Seeds of a few faults each; `make simulate` runs as many as one likes."""
    outcome = run(seed, 30)
    assert outcome.violation is None, (outcome.violation, outcome.done)
    assert outcome.acked > 30


@pytest.mark.system
def test_faults_are_repeated_with_their_seed() -> None:
    first, second = run(8, 15), run(8, 15)
    assert (first.trace, first.done) == (second.trace, second.done)


def test_a_committed_offset_that_goes_back_is_found() -> None:
    groups, what = GroupHistory(), Committed("g", PLACE)
    groups.fetched(what, groups.least(what), -1)
    groups.send(what, 5)
    groups.ack(what, 5)
    least = groups.least(what)
    groups.fetched(what, least, 5)
    with pytest.raises(Violation, match="I11"):
        groups.fetched(what, least, 4)
    with pytest.raises(Violation, match="nobody has sent"):
        groups.fetched(what, least, 6)


def test_a_commit_without_an_answer_counts_until_its_member_has_left() -> None:
    groups, what = GroupHistory(), Committed("g", PLACE)
    groups.send(what, 7)
    groups.lose(what, 7, "one")
    groups.send(what, 9)
    groups.ack(what, 9)
    groups.fetched(what, groups.least(what), 7)
    groups.gone("one")
    with pytest.raises(Violation, match="9 was acknowledged"):
        groups.fetched(what, groups.least(what), 7)


def test_a_transaction_seen_in_part_is_found() -> None:
    history = TransactionHistory()
    other = Place("t", 1)
    history.add(Outcome.UNKNOWN, {PLACE: [b"txn-0"], other: [b"txn-1"]})
    history.judge({PLACE: [], other: []})
    history.judge({PLACE: [b"txn-0"], other: [b"txn-1"]})
    with pytest.raises(Violation, match="1 of 2 records"):
        history.judge({PLACE: [b"txn-0"], other: []})


def test_a_transaction_that_ended_otherwise_is_found() -> None:
    history = TransactionHistory()
    history.add(Outcome.ABORTED, {PLACE: [b"txn-0"]})
    with pytest.raises(Violation, match="aborted"):
        history.judge({PLACE: [b"txn-0"]})
    history = TransactionHistory()
    history.add(Outcome.COMMITTED, {PLACE: [b"txn-0"]})
    with pytest.raises(Violation, match="lacks 1"):
        history.judge({PLACE: []})
    with pytest.raises(Violation, match="twice"):
        history.judge({PLACE: [b"txn-0", b"txn-0"]})


@pytest.mark.parametrize(
    "bug", [pytest.param("epoch_kept_over_restart", marks=pytest.mark.system), "acked_at_append"]
)
def test_a_seeded_bug_is_found(bug: str) -> None:
    """In a process of its own: pieces of the broker are replaced."""
    command = [sys.executable, "-m", "tests.simulation", "--dense", "--mutant", bug]
    ended = subprocess.run(
        [*command, "--seed", "2", "--runs", "8", "--length", "20"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert ended.returncode == 1, ended.stderr
    assert "FAILED" in ended.stdout
    assert any(f" {rule} " in ended.stdout for rule in RULES[bug])


def test_records_that_were_said_to_be_deleted_and_are_not_are_found() -> None:
    history = History()
    with pytest.raises(Violation, match="deleted before 5, and begins at 3"):
        history.delete(PLACE, 5, 3, frozenset())
    history.delete(PLACE, 5, 7, frozenset({"b1.1"}))
    history.delete(PLACE, 4, 7, frozenset({"b2.1"}))
    assert history.deleted[PLACE] == (5, frozenset({"b1.1"}))


def test_a_log_that_begins_where_nobody_wanted_it_to_is_found() -> None:
    with Stage() as stage:
        stage.gives_up()
        stage.write(5)
        broker = stage.world.brokers[stage.leader].broker
        assert broker is not None
        led = broker.replicas.leader_of(*stage.place)
        assert led is not None
        led.log.raise_log_start(2)
        with pytest.raises(Violation, match="begins at 2; records before 0"):
            stage.run_for(5)


def test_deleted_records_stay_deleted_on_those_that_live() -> None:
    shape = Shape(partitions=1, pause_s=0.3, transactional=0, is_trimmed=True)
    plan = [Fault(4.0, "slow link", 1, 2, 6.0, 3), Fault(6.0, "kill", 1, 2, 2.0, 0)]
    assert run(3, 15.0, shape=shape, plan=plan).violation is None


def test_a_record_that_comes_again_after_it_was_accepted_is_found() -> None:
    shares = ShareHistory()
    before = shares.mark()
    shares.acquired(PLACE, range(3), 1, before)
    shares.accept(PLACE, range(2))
    # A fetch that was under way by then may show it.
    shares.acquired(PLACE, range(1, 3), 2, before)
    with pytest.raises(Violation, match=r"S .*: 1 was accepted"):
        shares.acquired(PLACE, range(1, 3), 2, shares.mark())


def test_a_record_that_no_member_of_a_share_group_has_accepted_is_left() -> None:
    shares, acked = ShareHistory(), dict.fromkeys(range(6), b"")
    shares.accept(PLACE, range(2))
    shares.lose(PLACE, range(2, 3))
    shares.acquired(PLACE, range(3, 4), DELIVERIES_MAX, 0)
    assert shares.left(PLACE, acked) == [4, 5]


def test_what_a_share_group_has_accepted_outlives_its_coordinator() -> None:
    shape = Shape(partitions=1, pause_s=0.3, transactional=0, members=0, sharers=2)
    plan = [Fault(at_s, "two changes", 1, 2, 1.0, salt) for at_s, salt in ((3.0, 4), (9.0, 5))]
    outcome = run(4, 16.0, shape=shape, plan=plan)
    assert outcome.violation is None
    assert outcome.shared > 100


def key_history(*keys: int) -> KeyHistory:
    history = KeyHistory(History())
    history.written = {value: Written("one", key) for value, key in enumerate(keys)}
    return history


def test_a_key_whose_last_value_was_cleaned_away_is_found() -> None:
    keys = key_history(7, 7, 8)
    keys.ack(0, [0, 1])
    newest = keys.newest()
    keys.judge(newest, {1: (7, 1)})
    assert keys.cleaned == 1
    keys.judge(newest, {1: (7, 1), 2: (8, 2)})
    with pytest.raises(Violation, match="7 is found at 0, and was acknowledged at 1"):
        keys.judge(newest, {0: (7, 0)})


def test_compacted_records_that_are_others_than_were_written_are_found() -> None:
    keys = key_history(7, 7, 8)
    keys.ack(0, [0, 1])
    with pytest.raises(Violation, match="which nobody wrote"):
        keys.judge({}, {0: (8, 0)})
    with pytest.raises(Violation, match="1 is there, 0 was written"):
        keys.judge({}, {0: (7, 1)})
    with pytest.raises(Violation, match="1 of one is behind 2"):
        keys.judge({}, {4: (8, 2), 5: (7, 1)})


def test_followers_of_a_compacted_log_lead_with_all_of_its_keys() -> None:
    settings: dict[str, object] = dict(SETTINGS)
    shape = Shape(
        partitions=1, pause_s=0.2, transactional=0, members=0, has_keys=True, settings=settings
    )
    plan = [Fault(5.0, "kill", 1, 2, 2.0, 0), Fault(10.0, "two changes", 1, 2, 1.0, 4)]
    outcome = run(2, 18.0, shape=shape, plan=plan)
    assert outcome.violation is None
    assert outcome.cleaned > 20


def test_a_topic_that_may_lose_records_loses_none_after_its_last_unclean_election() -> None:
    losses = LossHistory(history := History())
    losses.ack(0, [b"loose-0"], 0)
    assert history.acked_end[LOSSY] == 1
    losses.judge({0: b"loose-0", 1: b"loose-1"})
    losses.lost()
    assert history.acked_end[LOSSY] == 0
    losses.judge({0: b"loose-1"})
    # Sent before the election: whoever has acknowledged it may have been replaced.
    losses.ack(4, [b"loose-2"], 0)
    losses.judge({0: b"loose-1"})
    losses.ack(1, [b"loose-3"], 1)
    assert history.acked_end[LOSSY] == 2
    with pytest.raises(Violation, match=r"U .* has lost b'loose-3'"):
        losses.judge({0: b"loose-1", 1: b"loose-2"})


def test_two_records_at_one_offset_in_one_leader_epoch_are_found() -> None:
    losses = LossHistory(History())
    losses.saw(3, 1, b"loose-0")
    losses.saw(3, 2, b"loose-1")
    with pytest.raises(Violation, match=r"U .* offset 3 has b'loose-2' in leader epoch 2"):
        losses.saw(3, 2, b"loose-2")
    with pytest.raises(Violation, match="doubled or out of order"):
        losses.judge({0: b"loose-1", 1: b"loose-0"})


def test_what_the_leader_of_an_unclean_election_had_stays() -> None:
    losses = LossHistory(History())
    losses.lost()
    losses.kept[3] = b"loose-0"
    losses.judge({3: b"loose-0"})
    with pytest.raises(Violation, match=r"U .* offset 3 is None"):
        losses.judge({4: b"loose-1"})
    losses.lost()
    losses.judge({4: b"loose-1"})


def test_a_leader_elected_uncleanly_leads_with_what_it_has_and_the_others_follow() -> None:
    shape = Shape(
        partitions=1,
        pause_s=0.3,
        transactional=0,
        members=0,
        losses={"unclean_leader_election_enable": "true", "min_insync_replicas": "1"},
        settings={"replica_lag_time_max_ms": 1_000},
    )
    plan = [Fault(2.0, "lagging heir", 1, 2, 1.0, 2)]
    outcome = run(3, 14.0, shape=shape, plan=plan)
    assert outcome.violation is None
    assert outcome.unclean > 0


def test_what_is_synced_outlives_the_power_of_all_machines() -> None:
    shape = Shape(
        partitions=1,
        pause_s=0.3,
        transactional=0,
        members=0,
        settings={"log_flush_interval_messages": 1},
    )
    plan = [Fault(3.0, "blackout", 1, 2, 2.0, 5), Fault(12.0, "blackout", 1, 2, 2.0, 6)]
    outcome = run(2, 20.0, shape=shape, plan=plan)
    assert outcome.violation is None
    assert any("recovered from the longest of its logs" in line for line in outcome.lines)


@pytest.mark.parametrize(
    "salt", [0, *(pytest.param(salt, marks=pytest.mark.system) for salt in range(1, 4))]
)
def test_a_broker_that_dies_while_a_log_is_moved_has_it_once(salt: int) -> None:
    shape = Shape(partitions=1, pause_s=0.3, transactional=0, members=0, directories=2)
    plan = [
        Fault(2.0, "move", 1, 2, 1.0, salt),
        Fault(4.0, "dies while moving", 1, 2, 1.0, salt),
        Fault(12.0, "directory fails", 2, 3, 2.0, salt),
    ]
    outcome = run(salt, 20.0, shape=shape, plan=plan)
    assert outcome.violation is None
    assert any("end of dies while moving" in line for line in outcome.done)
    assert outcome.moved > 0
