"""Causes of failovers: why partitions that get another leader, or none, lose the one of before.

    killed             brokers had evidence that its process is dead (`broker.membership.fencing`)
    lease_expired      its lease has ended: it hangs, is cut off, or its machine is gone
    stopped            it had said that it wants to stop, and has given up its lease
    draining           it wants to stop, and another can lead
    restarted          it has registered again; what it led before is over
    failed_directory   its replica's log directory has failed
    full_directory     that directory has no room, and another replica's has
    returned           there was no leader, and a replica that may lead has come back
    alone              there was no leader; the only replica is back, and how its broker had ended
                       is not known: it may lack what was not on its disk, but no other has more
    unclean            the new leader may lack committed records that another replica has, whatever
                       the reason was
    other              the partition was reassigned, for one

A store cannot tell a broker that hangs from one that is cut off: both renew no lease.
"""

from collections import Counter
from collections.abc import Mapping
from enum import Enum
from typing import Final

from broker.controller.active.broker_states import BrokerStates
from broker.controller.active.lease_ends import End, LeaseEnds
from broker.controller.active.partition_plan import PartitionPlan
from broker.controller.active.slices import Slices
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.controller.images.replica_directories import replicas_full, replicas_offline


class Cause(Enum):
    """See the module; the value is a label of metrics."""

    KILLED = "killed"
    LEASE_EXPIRED = "lease_expired"
    STOPPED = "stopped"
    DRAINING = "draining"
    RESTARTED = "restarted"
    FAILED_DIRECTORY = "failed_directory"
    FULL_DIRECTORY = "full_directory"
    RETURNED = "returned"
    ALONE = "alone"
    UNCLEAN = "unclean"
    OTHER = "other"


_OF_END: Final = {
    End.KILLED: Cause.KILLED,
    End.STOPPED: Cause.STOPPED,
    End.EXPIRED: Cause.LEASE_EXPIRED,
}


async def causes_of(
    plan: PartitionPlan, states: BrokerStates, ends: LeaseEnds, slices: Slices
) -> Mapping[Cause, int]:
    """Partitions of a plan whose leader changes, by cause; a dead broker's is there with 0 too."""
    found: Counter[Cause] = Counter()
    for node in states.dead:
        found[_OF_END[ends.end_of(node)]] += 0
    for _topic, old, new in plan.changes():
        if new.leader != old.leader:
            found[_cause(plan.image, old, new, states, ends)] += 1
        if slices.is_over:
            await slices.turn()
    return found


def _cause(
    image: ClusterImage,
    old: PartitionImage,
    new: PartitionImage,
    states: BrokerStates,
    ends: LeaseEnds,
) -> Cause:
    if new.leader != NO_LEADER and new.leader not in (*old.isr, *old.elr):
        return Cause.ALONE if old.replicas == (new.leader,) else Cause.UNCLEAN
    if old.leader == NO_LEADER:
        return Cause.RETURNED
    if old.leader in states.dead:
        return _OF_END[ends.end_of(old.leader)]
    if old.leader in states.waiting:
        return Cause.RESTARTED
    if old.leader in replicas_offline(image, old):
        return Cause.FAILED_DIRECTORY
    if old.leader in states.draining:
        return Cause.DRAINING
    if old.leader in replicas_full(image, old):
        return Cause.FULL_DIRECTORY
    return Cause.OTHER
