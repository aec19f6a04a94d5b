"""The leader's rules by example: high watermark, maximal ISR, min.insync.replicas."""

from dataclasses import replace

from broker.controller.images.partition_image import PartitionImage
from broker.replication.leader_state import LeaderState
from broker.replication.terms import ReplicationTerms

EPOCHS = {1: 10, 2: 20, 3: 30}


def record(
    isr: tuple[int, ...] = (1, 2, 3),
    *,
    partition_epoch: int = 0,
    replicas: tuple[int, ...] = (1, 2, 3),
) -> PartitionImage:
    return PartitionImage(0, 1, 5, partition_epoch, replicas, isr)


def leading(isr: tuple[int, ...] = (1, 2, 3), *, end: int = 100) -> LeaderState:
    return LeaderState(
        record(isr),
        ReplicationTerms(live_epoch=EPOCHS.get),
        epoch_start_offset=end,
        own_end_offset=end,
        now_ms=0.0,
    )


def fetch(state: LeaderState, node_id: int, offset: int, now_ms: float = 0.0) -> None:
    follower = state.follower(node_id)
    assert follower is not None
    follower.fetched(offset, 0, EPOCHS[node_id], state.own_end_offset, now_ms)


def test_the_high_watermark_stands_until_everybody_in_the_isr_has_fetched() -> None:
    state = leading()
    assert state.high_watermark(40, 2, 0.0) == 40
    fetch(state, 2, 90)
    assert state.high_watermark(40, 2, 0.0) == 40
    fetch(state, 3, 80)
    assert state.high_watermark(40, 2, 0.0) == 80


def test_with_all_in_sync_there_are_always_enough() -> None:
    """However many are asked for: then nobody has to look how many that is."""
    for isr in ((1, 2, 3), (1, 2), (1,)):
        state = leading(isr)
        assert state.has_all_in_sync == (isr == (1, 2, 3))
        assert state.has_all_in_sync == (not state.is_under_min_isr(9))


def test_the_high_watermark_never_goes_back() -> None:
    """Ends lie below it while followers truncate."""
    state = leading()
    fetch(state, 2, 90)
    fetch(state, 3, 10)
    assert state.high_watermark(40, 2, 0.0) == 40
    alone = leading((1,), end=30)
    assert alone.high_watermark(40, 1, 0.0) == 40


def test_it_stands_while_the_isr_is_below_min_insync_replicas() -> None:
    """KIP-966; more than there are replicas is never asked for."""
    state = leading((1,))
    assert state.high_watermark(40, 2, 0.0) == 40
    assert state.high_watermark(40, 1, 0.0) == 100
    assert state.is_under_min_isr(2)
    assert not leading((1, 2, 3)).is_under_min_isr(9)


def test_replicas_that_are_being_added_are_not_asked_for() -> None:
    """One replica of which there are to be three goes on committing alone until they are there."""
    growing = replace(record((1,), partition_epoch=1), adding=(2, 3))
    state = leading((1,))
    assert state.is_under_min_isr(2)
    state.update(growing)
    assert not state.is_under_min_isr(2)
    assert state.high_watermark(40, 2, 0.0) == 100
    state.update(record((1,), partition_epoch=2))
    assert state.is_under_min_isr(2)


def test_a_proposed_member_is_waited_for() -> None:
    """The controller may have agreed already (KIP-497)."""
    state = leading((1, 2))
    fetch(state, 2, 100)
    fetch(state, 3, 60, 0.0)
    state.propose((1, 2, 3), (1, 1, 1))
    assert state.high_watermark(40, 2, 1e9) == 60
    state.withdraw(0.0)
    assert state.high_watermark(40, 2, 1e9) == 100


def test_a_member_that_is_to_leave_is_waited_for_until_the_controller_agrees() -> None:
    state = leading()
    fetch(state, 2, 100)
    state.propose((1, 2), (1, 1))
    assert state.high_watermark(40, 2, 0.0) == 40
    state.update(record((1, 2), partition_epoch=1))
    assert state.proposed is None
    assert state.high_watermark(40, 2, 0.0) == 100


def test_who_has_caught_up_and_may_join_is_waited_for() -> None:
    state = leading((1, 2))
    fetch(state, 2, 120)
    fetch(state, 3, 100, 0.0)
    state.own_end_offset = 120
    assert state.high_watermark(40, 2, 30_000.0) == 100
    assert state.high_watermark(40, 2, 30_001.0) == 120


def test_who_fetches_in_an_old_life_is_not_waited_for() -> None:
    """KIP-903: it may not join."""
    state = leading((1, 2))
    fetch(state, 2, 120)
    follower = state.follower(3)
    assert follower is not None
    follower.fetched(100, 0, EPOCHS[3] - 1, 100, 0.0)
    state.own_end_offset = 120
    assert state.high_watermark(40, 2, 0.0) == 120


def test_an_older_record_changes_nothing() -> None:
    state = leading()
    state.propose((1, 2), (1, 1))
    state.update(record((1,), partition_epoch=0))
    assert state.isr == (1, 2, 3)
    assert state.proposed == (1, 2)


def test_progress_is_kept_when_replicas_are_added() -> None:
    state = leading((1, 2))
    fetch(state, 2, 100)
    state.update(record((1, 2), partition_epoch=1, replicas=(1, 2, 4)))
    assert [one.node_id for one in state.followers] == [2, 4]
    assert state.followers[0].end_offset == 100
    assert state.follower(3) is None


def test_who_joins_has_what_an_earlier_leader_may_have_committed() -> None:
    """KAFKA-7128: the high watermark of a new leader may be old; its log end is not."""
    state = leading((1, 2), end=100)
    fetch(state, 2, 100)
    fetch(state, 3, 99)
    assert state.wanted_isr(40, 100, 0.0, 1) is None
    fetch(state, 3, 100)
    assert state.wanted_isr(40, 100, 0.0, 1) == (1, 2, 3)
    state.own_end_offset = 120
    assert state.wanted_isr(101, 120, 0.0, 1) is None


def test_who_has_not_fetched_in_this_epoch_does_not_join() -> None:
    state = leading((1, 2), end=0)
    fetch(state, 2, 0)
    assert state.wanted_isr(0, 0, 0.0, 1) is None
    fetch(state, 3, 0)
    assert state.wanted_isr(0, 0, 0.0, 1) == (1, 2, 3)


def test_who_fetches_in_an_old_life_or_is_fenced_does_not_join() -> None:
    state = leading((1, 2), end=100)
    fetch(state, 2, 100)
    follower = state.follower(3)
    assert follower is not None
    follower.fetched(100, 0, EPOCHS[3] - 1, 100, 0.0)
    assert state.wanted_isr(40, 100, 0.0, 1) is None


def test_members_that_lag_leave_after_their_grace() -> None:
    """The leader never leaves itself out."""
    state = leading(end=100)
    fetch(state, 2, 100)
    assert state.wanted_isr(40, 100, 30_000.0, 1) is None
    assert state.wanted_isr(40, 100, 30_001.0, 1) == (1, 2)
    state.own_end_offset = 120
    assert state.wanted_isr(40, 120, 30_001.0, 1) == (1,)


def listening_to(state: LeaderState, until_ms: float) -> None:
    """This broker goes round all the time; who does not fetch for 5 s is silent."""
    listening = state._terms.listening
    listening.silence_max_ms = 5_000.0
    for step in range(1 + int(until_ms / listening.interval_ms)):
        listening.tick(step * listening.interval_ms)


def test_members_that_fall_silent_leave_while_enough_are_left() -> None:
    """A follower that lives, and is cut off from its leader alone."""
    state = leading(end=100)
    fetch(state, 2, 100, 6_000.0)
    fetch(state, 3, 100, 1_000.0)
    listening_to(state, 10_000.0)
    # Nothing waits for it.
    assert state.wanted_isr(100, 100, 6_001.0, 2) is None
    state.own_end_offset = 120
    assert state.wanted_isr(100, 120, 6_000.0, 2) is None
    assert state.wanted_isr(100, 120, 6_001.0, 2) == (1, 2)
    assert state.wanted_isr(100, 120, 6_001.0, 3) is None


def test_a_leader_that_hears_nobody_keeps_the_isr_that_is_needed() -> None:
    """It may be the one that is cut off; and producers wait rather than be refused."""
    state = leading(end=100)
    fetch(state, 2, 100)
    fetch(state, 3, 100)
    listening_to(state, 10_000.0)
    state.own_end_offset = 120
    assert state.wanted_isr(100, 120, 9_000.0, 2) is None
    assert state.wanted_isr(100, 120, 9_000.0, 1) == (1,)


def test_who_has_not_fetched_in_this_epoch_yet_is_not_silent() -> None:
    """It has the longer grace: it may have to find its leader first."""
    state = leading(end=100)
    fetch(state, 2, 100, 9_000.0)
    listening_to(state, 10_000.0)
    assert state.wanted_isr(40, 100, 10_000.0, 2) is None


def test_who_has_left_in_silence_is_not_waited_for() -> None:
    state = leading(end=100)
    fetch(state, 2, 120, 6_000.0)
    fetch(state, 3, 100)
    state.own_end_offset = 120
    listening_to(state, 10_000.0)
    assert state.high_watermark(100, 2, 6_001.0) == 100
    state.update(record((1, 2), partition_epoch=1))
    assert state.high_watermark(100, 2, 6_001.0) == 120


def test_nothing_is_proposed_twice() -> None:
    state = leading((1, 2), end=100)
    fetch(state, 2, 100)
    fetch(state, 3, 100)
    wanted = state.wanted_isr(40, 100, 0.0, 1)
    assert wanted is not None
    state.propose(wanted, (1,) * len(wanted))
    assert state.wanted_isr(40, 100, 0.0, 1) is None
    state.withdraw(50.0)
    assert state.wanted_isr(40, 100, 49.0, 1) is None
    assert state.wanted_isr(40, 100, 50.0, 1) == (1, 2, 3)


def test_one_leaves_and_one_joins_in_one_change() -> None:
    state = leading((1, 2), end=100)
    fetch(state, 3, 100, 30_001.0)
    assert state.wanted_isr(40, 100, 30_001.0, 1) == (1, 3)


def test_a_follower_need_not_reach_what_the_leader_has_lost() -> None:
    """Records that were queued when it took over, and found no room."""
    state = leading((1,), end=100)
    fetch(state, 2, 60)
    follower = state.follower(2)
    assert follower is not None
    assert not state.can_join(follower, 40)
    state.begin_no_later_than(60)
    assert state.can_join(follower, 40)
    state.begin_no_later_than(70)
    assert state.epoch_start_offset == 60
