"""The state that partitions should have, given the brokers there are: planned from state alone.

    ISR          members that take part; one that wants to stop leaves when another could lead;
                 not those whose log directory does not work (KIP-858), nor, while another could
                 lead, those whose directory has no room
    leader       one that may lead (`broker.controller.active.partition_change`); one that wants to
                 stop goes on where no other broker could
    undecided    where members leave the ISR, and the leases of all others in it have ended a moment
                 ago: whether these live is waited for. If they are dead, all leave in one step, and
                 all are eligible: no ISR has been without any of them. In two steps who leaves
                 first would not be, and could not lead when it is the first to come back.
    reassigned   a reassignment that is complete by now ends
    ELR          without brokers whose logs may lack what they had, or that are not registered

Nothing here asks what has happened, so nothing that happened unseen (before an election of the
controller, while the store was away) can matter. Partitions that are as they should be cost a
comparison or two.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

from broker.controller.active.broker_states import BrokerStates
from broker.controller.active.lease_ends import LeaseEnds
from broker.controller.active.partition_change import changed
from broker.controller.active.partition_plan import PartitionPlan
from broker.controller.active.slices import Slices
from broker.controller.active.topic_terms import TopicTerms
from broker.controller.images.broker_records import Fence, encode_fence, fence_key
from broker.controller.images.cluster_image import BrokerImage, ClusterImage, TopicImage
from broker.controller.images.features import unsupported
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.controller.images.replica_directories import NONE, replicas_full, replicas_offline
from broker.controller.store.metadata_store import Put
from broker.controller.store.store_writer import Unit


@dataclass(slots=True)
class Moves:
    """What a plan changes, for the log line and the counters.

    Attributes:
        moved: Partitions that get another leader.
        leaderless: Those that get none.
        unclean: New leaders that may lack committed records which another replica has.
        alone: Those that may lack some, and are the only replica: no other could have them.
        from_elr: Those that come from the eligible leader replicas.
    """

    moved: int = 0
    leaderless: int = 0
    unclean: int = 0
    alone: int = 0
    from_elr: int = 0

    def count(self, old: PartitionImage, new: PartitionImage) -> None:
        """Add one changed partition."""
        if new.leader == old.leader:
            return
        if new.leader == NO_LEADER:
            self.leaderless += 1
            return
        self.moved += 1
        if new.leader in old.isr:
            return
        if new.leader in old.elr:
            self.from_elr += 1
        elif old.replicas == (new.leader,):
            self.alone += 1
        else:
            self.unclean += 1


async def plan_partitions(
    image: ClusterImage, states: BrokerStates, terms: TopicTerms, slices: Slices
) -> PartitionPlan:
    """Changes of all partitions that are not as they should be."""
    plan = PartitionPlan(image)
    draining = states.draining
    # Partitions that lie alike share one tuple: each is asked about once.
    all_online: dict[tuple[UUID, ...], bool] = {}
    for topic in image.topics.values():
        await slices.turn()
        for partition in topic.partitions:
            if slices.is_over:
                await slices.turn()
            directories = partition.directories
            is_online = all_online.get(directories) if directories else True
            if is_online is None:
                is_online = not (
                    replicas_offline(image, partition) or replicas_full(image, partition)
                )
                all_online[directories] = is_online
            if is_online and _is_settled(partition, states, draining):
                continue
            if states.without_lease and _is_undecided(partition, states):
                plan.is_undecided = True
                continue
            offline = NONE if is_online else replicas_offline(image, partition)
            full = NONE if is_online else replicas_full(image, partition)
            new = _settled(topic, partition, states, terms, offline, full)
            if new is partition and new.leader == NO_LEADER:
                plan.leaderless.append((topic, partition))
            plan.change(topic, new)
    return plan


def _is_settled(partition: PartitionImage, states: BrokerStates, draining: frozenset[int]) -> bool:
    """Whether nothing can be planned for it; cheap, for all of them are asked."""
    return (
        partition.leader in states.may_lead
        and not (partition.adding or partition.removing)
        and states.active.issuperset(partition.isr)
        and (not draining or draining.isdisjoint(partition.isr))
        and (not partition.elr or states.eligible.issuperset(partition.elr))
    )


def _is_undecided(partition: PartitionImage, states: BrokerStates) -> bool:
    """Whether the ISR gets smaller, and no lease of what is left of it is held; see the module."""
    staying = states.active.intersection(partition.isr)
    return bool(staying) and staying <= states.without_lease and len(staying) < len(partition.isr)


def _settled(
    topic: TopicImage,
    partition: PartitionImage,
    states: BrokerStates,
    terms: TopicTerms,
    offline: frozenset[int],
    full: frozenset[int],
) -> PartitionImage:
    isr = [node for node in partition.isr if node in states.active and node not in offline]
    lost = frozenset(partition.elr) - states.eligible | states.lost
    staying = [node for node in isr if node in states.may_lead and node not in full]
    could_lead = [
        node for node in staying if node == partition.leader or node not in states.without_lease
    ]
    if could_lead or partition.leader not in states.active or partition.leader in offline:
        return changed(partition, terms.of(topic, partition, lost=lost), isr=staying or isr)
    goes_on = terms.of(topic, partition, lost=lost, may_also_lead=partition.leader)
    return changed(partition, goes_on, isr=isr)


def is_decided_anew(old: ClusterImage, new: ClusterImage) -> bool:
    """Whether settings have changed by which a partition may go on that could not before.

    One without a leader (`unclean.leader.election.enable`, `unclean.recovery.strategy`), or whose
    reassignment is under way (`min.insync.replicas`).
    """
    if old.configs != new.configs:
        return any(map(_waits, new.topics.values()))
    for name, topic in new.topics.items():
        before = old.topics.get(name)
        if (
            before is not topic
            and before is not None
            and before.overrides != topic.overrides
            and _waits(topic)
        ):
            return True
    return False


def _waits(topic: TopicImage) -> bool:
    return any(one.leader == NO_LEADER or one.is_reassigning for one in topic.partitions)


def lacks_room(image: ClusterImage) -> bool:
    """Whether a log directory is full: who has room may come into the ISR of a leader in it."""
    return any(broker.full_directories for broker in image.brokers.values())


def fences_of(image: ClusterImage, states: BrokerStates, ends: LeaseEnds) -> list[Unit]:
    """What to commit so that brokers without a lease take no part."""
    units = []
    for node in states.dead:
        fence = encode_fence(image.brokers[node].epoch, ends.end_of(node).value)
        units.append(Unit((), (Put(fence_key(node), fence),)))
    return units


def admissions_of(image: ClusterImage, states: BrokerStates) -> Iterator[tuple[int, Unit]]:
    """What to commit to let in brokers that wait, now that no partition counts on them.

    One that lacks a feature's level stays outside, and its fence says so: it would read records
    that it does not understand.

    To be asked only when nothing is left to plan, and nothing is undecided: a broker must not lead
    again in a leader epoch in which it led before.
    """
    for node in states.waiting:
        broker = image.brokers[node]
        lacks = lacking(image, broker)
        fence = Fence(0 if lacks else broker.epoch, lacks)
        if image.facts[node].fence != fence:
            yield node, Unit((), (Put(fence_key(node), encode_fence(*fence)),))


def lacking(image: ClusterImage, broker: BrokerImage) -> str:
    """What a broker lacks of the cluster's features, as a sentence; empty: nothing."""
    said = broker.registration
    return "" if said is None else unsupported(image.features, said.features)
