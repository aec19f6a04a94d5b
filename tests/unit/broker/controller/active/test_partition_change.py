"""A partition's next record: the rules of KIP-966 by example, and what always holds."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.controller.active.partition_change import (
    Election,
    Recovery,
    Terms,
    changed,
    replicas_to_compare,
)
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from tests.effort import examples

ALL = frozenset({1, 2, 3})
HEALTHY = PartitionImage(0, 1, 4, 7, (1, 2, 3), (1, 2, 3))


def terms(*may_lead: int, min_isr: int = 2, **more: object) -> Terms:
    return Terms(frozenset(may_lead), min_isr, **more)  # type: ignore[arg-type]  # any field


def fields(partition: PartitionImage) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    return partition.leader, partition.isr, partition.elr


def without(
    partition: PartitionImage, *gone: int, min_isr: int = 2, **more: object
) -> PartitionImage:
    """After some brokers have been fenced, out of those that are there."""
    alive = ALL - set(gone)
    isr = [node for node in partition.isr if node in alive]
    return changed(partition, terms(*alive, min_isr=min_isr, **more), isr=isr)


def test_nothing_to_change_is_the_same_object() -> None:
    """So it costs nothing in the store, and no epoch."""
    assert changed(HEALTHY, terms(1, 2, 3)) is HEALTHY
    assert changed(HEALTHY, terms(1, 2, 3), isr=(1, 2, 3)) is HEALTHY


def test_a_follower_that_dies_costs_no_leader_epoch() -> None:
    """The partition epoch grows; as |ISR| is still enough, the ELR stays empty."""
    new = without(HEALTHY, 3)
    assert fields(new) == (1, (1, 2), ())
    assert (new.leader_epoch, new.partition_epoch) == (4, 8)


def test_a_leader_that_dies_is_followed_by_the_next_replica_in_sync() -> None:
    """In order of replicas, in a new leader epoch."""
    new = without(HEALTHY, 1)
    assert fields(new) == (2, (2, 3), ())
    assert (new.leader_epoch, new.partition_epoch) == (5, 8)


def test_below_min_isr_who_leaves_stays_eligible() -> None:
    """Down to none: then nobody leads, until one returns that is in the ELR: it leads alone."""
    two = without(HEALTHY, 1)
    one = without(two, 1, 2)
    assert fields(one) == (3, (3,), (2,))
    none = without(one, 1, 2, 3)
    assert fields(none) == (NO_LEADER, (), (2, 3))
    assert none.leader_epoch == one.leader_epoch + 1
    back = changed(none, terms(2))
    assert fields(back) == (2, (2,), (3,))
    assert not back.is_recovering
    assert back.leader_epoch == none.leader_epoch + 1


def test_a_replica_outside_isr_and_elr_does_not_lead() -> None:
    """Although it is the only one there is (unclean election is off)."""
    partition = without(without(without(HEALTHY, 1), 1, 2), 1, 2, 3)
    assert changed(partition, terms(1)) is partition


def test_elr_is_emptied_when_the_isr_is_large_enough() -> None:
    """And so is what was known before it."""
    one = without(without(HEALTHY, 1), 1, 2)
    full = changed(one, terms(1, 2, 3), isr=(3, 1))
    assert (full.isr, full.elr, full.last_known_elr) == ((3, 1), (), ())


def test_a_broker_that_may_have_lost_its_log_leaves_the_elr() -> None:
    """It is remembered as last known, and does not lead cleanly."""
    one = without(without(HEALTHY, 1), 1, 2)
    lost = changed(one, terms(3, lost=frozenset({2})))
    assert (lost.isr, lost.elr, lost.last_known_elr) == ((3,), (), (2,))
    none = changed(lost, terms(2), isr=())
    assert fields(none) == (NO_LEADER, (), (3,))


def all_lost() -> PartitionImage:
    """Nobody is in ISR or ELR any more: each that was has come back without what it had."""
    one = without(without(HEALTHY, 1), 1, 2)
    none = without(one, 1, 2, 3)
    assert none.last_known_elr[0] == 3
    lost = changed(none, terms(lost=frozenset({2, 3})))
    assert (lost.isr, lost.elr, lost.last_known_elr) == ((), (), (3, 2))
    return lost


def test_nobody_leads_before_the_logs_are_compared() -> None:
    """Not even who led last: it may have kept less than another (Kafka 4.2 elects it)."""
    lost = all_lost()
    assert changed(lost, terms(1, 2, 3)) is lost
    again = changed(lost, terms(1, 2, 3, chosen=2))
    assert fields(again) == (2, (2,), ())
    assert again.is_recovering
    assert again.last_known_elr == ()
    assert changed(lost, terms(1, 3, chosen=2)) is lost


def test_a_log_that_is_the_only_one_is_compared_with_none() -> None:
    """It leads as soon as it is there, unless an administrator is to decide."""
    alone = replace(all_lost(), replicas=(3,), last_known_elr=(3,))
    assert changed(alone, terms(1, 2)) is alone
    assert fields(changed(alone, terms(3))) == (3, (3,), ())
    assert changed(alone, terms(3, recovery=Recovery.NONE)) is alone


def test_the_last_in_sync_is_compared_with_the_others_that_live() -> None:
    """It may have come back with less than they have, or with a new disk; Kafka 4.2 elects it."""
    sole = replace(all_lost(), last_known_elr=(3,))
    assert changed(sole, terms(1, 2, 3)) is sole
    assert replicas_to_compare(sole, terms(1, 2, 3)) == ((3, 1, 2), (3,))
    assert fields(changed(sole, terms(1, 3, chosen=1))) == (1, (1,), ())


def test_which_logs_are_compared_is_the_strategys() -> None:
    """Balanced waits for those that were in sync last. Aggressive: whatever there is, at once."""
    lost = all_lost()
    assert replicas_to_compare(lost, terms(1, 2, 3)) == ((3, 2, 1), (3, 2))
    assert replicas_to_compare(lost, terms(recovery=Recovery.NONE)) is None
    assert replicas_to_compare(lost, terms(recovery=Recovery.AGGRESSIVE)) == ((3, 2, 1), ())
    unknown = replace(lost, last_known_elr=())
    assert replicas_to_compare(unknown, terms()) == ((1, 2, 3), (1, 2, 3))
    eligible = replace(lost, elr=(2,), last_known_elr=(3,))
    assert replicas_to_compare(eligible, terms()) is None
    assert replicas_to_compare(eligible, terms(recovery=Recovery.AGGRESSIVE)) == ((3, 1, 2), ())
    assert replicas_to_compare(HEALTHY, terms(recovery=Recovery.AGGRESSIVE)) is None


def test_a_fenced_last_leader_is_not_elected() -> None:
    """KAFKA-19522: it has to be alive."""
    partition = PartitionImage(0, NO_LEADER, 9, 9, (1, 2), (), last_known_elr=(1,))
    assert changed(partition, terms(2)) is partition


def test_who_has_just_lost_its_lease_is_not_elected() -> None:
    """It may be dead, and would be fenced in the next turn: neither from the ISR nor the ELR."""
    one = terms(2, 3, without_lease={2})
    assert fields(changed(HEALTHY, one, isr=(2, 3))) == (3, (2, 3), ())
    alone = replace(HEALTHY, isr=(1,), elr=(2, 3))
    assert fields(changed(alone, one, isr=())) == (3, (3,), (2, 1))
    nobody = terms(2, 3, without_lease={2, 3})
    assert fields(changed(alone, nobody, isr=())) == (NO_LEADER, (), (2, 3, 1))


def test_who_has_just_lost_its_lease_goes_on_leading() -> None:
    """The store may have ended it too early."""
    assert changed(HEALTHY, terms(1, 2, 3, without_lease={1})) is HEALTHY


def test_nothing_unclean_is_tried_while_a_clean_leader_may_return() -> None:
    """Once it is known to be dead, or back, the election goes on."""
    one = terms(2, 3, election=Election.UNCLEAN, recovery=Recovery.AGGRESSIVE, without_lease={2})
    led_by_none = changed(replace(HEALTHY, isr=(1, 2)), one, isr=(2,))
    assert fields(led_by_none) == (NO_LEADER, (2,), (1,))
    assert changed(led_by_none, replace(one, chosen=3)) is led_by_none
    assert replicas_to_compare(led_by_none, one) is None
    assert changed(led_by_none, replace(one, without_lease=())).leader == 2
    assert changed(led_by_none, replace(one, without_lease=(), may_lead=(3,)), isr=()).leader == 3


def test_unclean_election_takes_any_replica() -> None:
    """Only where it is allowed; the ISR is the new leader alone, and it is recovering."""
    none = without(without(without(HEALTHY, 1), 1, 2), 1, 2, 3)
    new = changed(none, terms(1, election=Election.UNCLEAN))
    assert fields(new) == (1, (1,), ())
    assert new.is_recovering
    assert new.last_known_elr == ()


def test_preferred_election_only_to_a_replica_in_sync() -> None:
    """Else the leader stays."""
    moved = PartitionImage(0, 2, 4, 7, (1, 2, 3), (2, 3))
    preferred = terms(1, 2, 3, election=Election.PREFERRED)
    assert changed(moved, preferred) is moved
    ready = replace(moved, isr=(2, 3, 1))
    assert changed(ready, preferred).leader == 1
    assert changed(ready, terms(1, 2, 3)) is ready


def test_without_elr_the_last_isr_stays() -> None:
    """As in clusters of before KIP-966: its member is waited for."""
    one = replace(HEALTHY, isr=(1,))
    none = changed(one, terms(2, 3, has_elr=False), isr=())
    assert fields(none) == (NO_LEADER, (1,), ())
    assert changed(none, terms(1, has_elr=False)).leader == 1


@pytest.mark.parametrize("is_recovering", [False, True])
def test_recovery_ends_when_the_leader_says_so(is_recovering: bool) -> None:
    partition = replace(HEALTHY, isr=(1,), is_recovering=True)
    new = changed(partition, terms(1, min_isr=1), is_recovering=is_recovering)
    assert new.is_recovering is is_recovering


def moving(
    *,
    to: tuple[int, ...],
    isr: tuple[int, ...] = (1, 2, 3),
    of: tuple[int, ...] = (1, 2, 3),
    leader: int = 1,
) -> PartitionImage:
    """A partition on its way to other replicas."""
    removing = tuple(node for node in of if node not in to)
    adding = tuple(node for node in to if node not in of)
    return PartitionImage(0, leader, 4, 7, (*to, *removing), isr, adding=adding, removing=removing)


@pytest.mark.parametrize(
    ("to", "isr", "is_done"),
    [
        ((4, 5, 6), (1, 2, 3, 4, 5), False),
        ((4, 5, 6), (1, 2, 3, 4, 5, 6), True),
        # 2 stays, and is away.
        ((1, 2, 4), (1, 3), False),
        ((1, 2, 4), (1, 3, 4), True),
        ((2, 4, 5), (1, 3, 4, 5), True),
        # There would be fewer in sync than before.
        ((2, 4, 5), (1, 3, 4), False),
        ((1, 2), (1, 3), False),
        ((1, 2), (1, 2), True),
        ((1, 2, 3, 4), (1, 3, 4), True),
        # Fewer than min.insync.replicas.
        ((1, 2, 4), (3, 4), False),
    ],
)
def test_reassignment_ends_when_those_added_are_in_sync_and_nothing_is_lost(
    to: tuple[int, ...], isr: tuple[int, ...], is_done: bool
) -> None:
    """Replicas that stay, and are away, hold it up only where there are to be fewer."""
    partition = moving(to=to, isr=(isr[0],), leader=isr[0])
    new = changed(partition, terms(1, 2, 3, 4, 5, 6), isr=isr)
    assert new.is_reassigning is not is_done
    assert new.replicas == (to if is_done else partition.replicas)
    assert set(new.isr) == set(isr) & set(new.replicas)


def test_a_removed_replica_ends_the_leader_epoch_even_if_the_leader_stays() -> None:
    """What the leader knows of it must not pass for the replica that comes in its place."""
    partition = moving(to=(1, 2, 4))
    new = changed(partition, terms(1, 2, 3, 4), isr=(1, 2, 3, 4))
    assert (new.leader, new.replicas, new.isr) == (1, (1, 2, 4), (1, 2, 4))
    assert (new.leader_epoch, new.partition_epoch) == (5, 8)


def test_a_leader_that_is_removed_is_followed_by_the_first_of_the_new_replicas() -> None:
    partition = moving(to=(5, 4, 2))
    new = changed(partition, terms(1, 2, 3, 4), isr=(1, 2, 3, 4, 5))
    assert (new.leader, new.isr, new.leader_epoch) == (4, (2, 4, 5), 5)


def test_reassignment_does_not_end_with_nobody_to_lead() -> None:
    """The replicas that would be left want to stop."""
    partition = moving(to=(4,))
    assert changed(partition, terms(1, 2, 3), isr=(1, 2, 3, 4)).is_reassigning


def test_added_replicas_do_not_count_for_min_isr() -> None:
    """One replica that is to be three: it holds all that is committed, so nothing is eligible."""
    partition = moving(to=(1, 2, 3), of=(1,), isr=(1,))
    assert changed(partition, terms(1, 2, 3)) is partition
    joined = changed(partition, terms(1, 2, 3), isr=(1, 2))
    assert (joined.isr, joined.elr) == ((1, 2), ())


def test_unclean_election_passes_over_added_replicas() -> None:
    """They may have nothing yet; an administrator can ask for one all the same."""
    dead = replace(moving(to=(4, 5), of=(1, 2), isr=()), leader=NO_LEADER)
    unclean = terms(4, 5, election=Election.UNCLEAN)
    assert changed(dead, unclean) is dead
    asked = changed(dead, replace(unclean, takes_added=True))
    assert (asked.leader, asked.is_recovering) == (4, True)


NODES = st.frozensets(st.integers(1, 4))
TARGETS = st.none() | st.permutations([1, 2, 3, 4]).flatmap(
    lambda nodes: st.integers(1, 4).map(lambda size: tuple(nodes[:size]))
)


@given(
    st.lists(
        st.tuples(
            NODES, NODES, st.integers(1, 3), st.sampled_from(Election), TARGETS, NODES, NODES
        ),
        max_size=12,
    )
)
@examples(300)
def test_records_stay_sane(
    steps: list[
        tuple[
            frozenset[int],
            frozenset[int],
            int,
            Election,
            tuple[int, ...] | None,
            frozenset[int],
            frozenset[int],
        ]
    ],
) -> None:
    """ISR and ELR disjoint and of replicas; a leader is in the ISR; epochs grow by one."""
    partition = PartitionImage(0, 1, 0, 0, (1, 2, 3), (1, 2, 3))
    for alive, lost, min_isr, election, target, joining, no_lease in steps:
        one = Terms(alive - lost, min_isr, election, lost - alive, without_lease=no_lease)
        assigned = None
        if target is not None:
            removing = tuple(sorted(set(partition.replicas) - set(target)))
            replicas = (*target, *removing)
            adding = tuple(sorted(set(replicas) - set(partition.original)))
            assigned = replace(partition, replicas=replicas, adding=adding, removing=removing)
        isr = [node for node in partition.isr if node in alive]
        if isr and partition.leader != NO_LEADER:
            isr += sorted(joining & alive & set(partition.replicas) - set(isr))
        new = changed(partition, one, isr=isr, assigned=assigned)
        is_one_gone = not set(partition.replicas) <= set(new.replicas)
        assert new.replicas
        assert len(set(new.replicas)) == len(new.replicas)
        assert set(new.adding) | set(new.removing) <= set(new.replicas)
        assert len(set(new.isr)) == len(new.isr)
        assert not set(new.isr) & set(new.elr)
        assert set(new.isr) | set(new.elr) | set(new.last_known_elr) <= set(new.replicas)
        assert new.leader == NO_LEADER or new.leader in new.isr
        assert new.leader == NO_LEADER or new.leader in one.may_lead
        assert new.leader in (NO_LEADER, partition.leader) or new.leader not in no_lease
        assert not new.elr or len(new.isr) < min(min_isr, len(new.original))
        assert new.leader_epoch - partition.leader_epoch == (
            new.leader != partition.leader or is_one_gone
        )
        assert new.partition_epoch - partition.partition_epoch == (new is not partition)
        assert changed(new, one, isr=new.isr) is new or new.leader == NO_LEADER or lost
        partition = new
