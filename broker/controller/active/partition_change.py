"""One partition's next record: ISR, eligible leader replicas, leader, and their epochs.

    new ISR ──> a reassignment that is complete now: the replicas that it removes are gone
            ──> ELR: |ISR| below min.insync.replicas keeps who left it as eligible (KIP-966)
            ──> leader: stays while it is valid, else the first valid one in order of replicas
                  valid            in the ISR; or in the ELR while the ISR is empty; another than
                                   before only while it holds its lease; nothing else is tried
                                   before all of them hold theirs, or are dead
                  none is          the replica with the longest log, once it is known which that is
                                   (`broker.controller.active.log_recovery`); the only replica there
                                   is, without comparing
                  none of these    any replica, if unclean elections are allowed; else no leader
            ──> leader epoch + 1 if the leader is another, or a replica is gone;
                partition epoch + 1 if anything is different

A leader from the ELR makes the ISR itself alone; one elected uncleanly (the longest log, or any
replica) also makes the partition RECOVERING, and what the others had is lost. Kafka 4.2 elects the
last known leader, whatever it has kept: also one whose disk was replaced, beside others with a log.

A reassignment is complete when all that it adds are in the ISR, and the ISR of the replicas that
stay is all of them; or not smaller than that of the replicas of before, and than
`min.insync.replicas`. So a replica that is neither added nor removed, and is away, holds up nothing
(KAFKA-19975), unless there are to be fewer replicas than before.

A replica that is gone begins anew if it is assigned again: what the leader has noted of it in this
leader epoch would pass for the new, empty one. So the leader epoch ends with it.

Until it is complete the replicas that are added do not count for `min.insync.replicas`: one replica
of which there are to be three takes appends meanwhile. So do their leaders count
(`broker.replication.leader_state`).

Source: Kafka 4.2, PartitionChangeBuilder.java, PartitionReassignmentReplicas.java; KIP-455,
KIP-966; KAFKA-19522 (the last known leader has to be alive, too).
"""

import enum
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from broker.controller.images.partition_image import NO_LEADER, PartitionImage

NO_BROKERS: Final[frozenset[int]] = frozenset()


class Election(enum.Enum):
    """Who may become leader."""

    ONLINE = "any replica in sync"
    PREFERRED = "the first replica, if it is in sync"
    UNCLEAN = "any replica"


class Recovery(enum.Enum):
    """What is done for a partition that has no clean leader (`unclean.recovery.strategy`)."""

    NONE = "None"
    BALANCED = "Balanced"
    AGGRESSIVE = "Aggressive"


@dataclass(frozen=True, slots=True)
class Terms:
    """What elections of a topic go by.

    Attributes:
        may_lead: Brokers that are let in and do not want to stop.
        min_isr: `min.insync.replicas` of the topic; more than its replicas are never asked for.
        election: Who may become leader.
        lost: Brokers whose logs may lack what they had: they leave ISR and ELR.
        has_elr: Eligible leader replicas are kept; else the last ISR is.
        recovery: What is done where no broker can lead cleanly.
        chosen: The replica that has turned out to have the longest log; `NO_LEADER`: not known.
        takes_added: An unclean election may end with a replica that is being added, and may have
            next to nothing: only where an administrator asks for it.
        without_lease: Of those that may lead, all whose lease has ended a moment ago: they go on
            leading, and are not elected.
    """

    may_lead: Collection[int]
    min_isr: int
    election: Election = Election.ONLINE
    lost: Collection[int] = NO_BROKERS
    has_elr: bool = True
    takes_added: bool = False
    recovery: Recovery = Recovery.BALANCED
    chosen: int = NO_LEADER
    without_lease: Collection[int] = NO_BROKERS

    def takes(self, node: int, leader: int) -> bool:
        """Whether a broker may lead where `leader` does: go on, or be elected."""
        return node in self.may_lead and (node == leader or node not in self.without_lease)

    def waits_for(self, nodes: Iterable[int]) -> bool:
        """Whether one of these may soon hold its lease again, or be known to be dead."""
        return any(node in self.without_lease and node in self.may_lead for node in nodes)

    def takes_none(self, nodes: Iterable[int], leader: int) -> bool:
        """Whether no one of these brokers may lead where `leader` does."""
        return not any(self.takes(node, leader) for node in nodes)


class _Elected(NamedTuple):
    leader: int
    is_clean: bool = True


def changed(
    partition: PartitionImage,
    terms: Terms,
    *,
    isr: Iterable[int] | None = None,
    is_recovering: bool | None = None,
    assigned: PartitionImage | None = None,
) -> PartitionImage:
    """The partition with another ISR, and what follows from it; the same object if nothing does.

    Args:
        partition: As it stands.
        terms: See there.
        isr: The ISR it is to have; None: as it is. Order is kept.
        is_recovering: What the leader says of its recovery; None: as it is.
        assigned: The partition with other replicas, added and removed ones; None: as they are.
    """
    base = partition if assigned is None else assigned
    wanted = partition.isr if isr is None else tuple(isr)
    wanted = tuple(node for node in wanted if node not in terms.lost and node in base.replicas)
    if not terms.has_elr and not wanted:
        wanted = tuple(node for node in partition.isr if node in base.replicas)
    if base.is_reassigning and is_complete(base, terms, wanted):
        base = base.keeping(base.target)
        wanted = tuple(node for node in wanted if node in base.replicas)
    new = _with_leader(partition, base, terms, wanted, is_recovering)
    if new.is_reassigning and is_complete(new, terms, new.isr):
        # Who has been elected makes the ISR alone, and that is enough.
        new = new.keeping(new.target)
        new = replace(new, isr=tuple(node for node in new.isr if node in new.replicas))
        new = _with_leader(partition, new, terms, new.isr, new.is_recovering)
    if new == partition:
        return partition
    is_one_gone = new.replicas != partition.replicas and not set(new.replicas).issuperset(
        partition.replicas
    )
    return replace(
        new,
        leader_epoch=partition.leader_epoch + (new.leader != partition.leader or is_one_gone),
        partition_epoch=partition.partition_epoch + 1,
    )


def _with_leader(
    partition: PartitionImage,
    base: PartitionImage,
    terms: Terms,
    wanted: tuple[int, ...],
    is_recovering: bool | None,
) -> PartitionImage:
    """The partition with this ISR, its ELR, and who leads then; the epochs are as they were."""
    min_isr = min_isr_of(base, terms)
    elr, last_known = _eligible(base, terms, wanted)
    elected = _elect(base, terms, wanted, elr)
    recovering = partition.is_recovering if is_recovering is None else is_recovering
    leader = elected.leader
    if leader != partition.leader and leader != NO_LEADER:
        if not elected.is_clean:
            wanted, elr, last_known, recovering = (leader,), (), (), True
        elif leader in elr:
            wanted, elr = (leader,), tuple(node for node in elr if node != leader)
            last_known = tuple(node for node in last_known if node != leader)
            if len(wanted) >= min_isr:
                elr = last_known = ()
    if terms.has_elr and not wanted:
        last_known = _last_leader_first(base, last_known)
    return replace(
        base,
        leader=leader,
        isr=wanted,
        elr=elr,
        last_known_elr=last_known,
        is_recovering=recovering,
    )


class Compared(NamedTuple):
    """Replicas whose logs are compared before one of them leads.

    Attributes:
        members: All of them; of equal logs the first one's is taken.
        needed: Of those, all that have to answer; empty: any that does is enough.
    """

    members: tuple[int, ...]
    needed: tuple[int, ...]


def replicas_to_compare(partition: PartitionImage, terms: Terms) -> Compared | None:
    """Replicas whose logs are to be compared before one of them leads; None: none are.

    Balanced: all that were in ISR or ELR last, once both are empty; the partition waits for them.
    The others are compared as far as they live: who was last in sync alone may have lost more than
    they ever lacked. Aggressive: all there are, as soon as no broker leads it; those that answer in
    time count. The leader of before comes first.
    """
    if partition.leader != NO_LEADER or terms.recovery is Recovery.NONE:
        return None
    known = partition.last_known_elr
    members = tuple(dict.fromkeys((*known, *partition.replicas)))
    if terms.waits_for(partition.isr or partition.elr):
        return None
    if terms.recovery is Recovery.AGGRESSIVE:
        return Compared(members, ())
    if partition.isr or partition.elr or not terms.has_elr:
        return None
    return Compared(members, known or members)


def min_isr_of(partition: PartitionImage, terms: Terms) -> int:
    """How many in-sync replicas are asked for: never more than there are without those added."""
    return min(terms.min_isr, len(partition.original))


def is_complete(partition: PartitionImage, terms: Terms, isr: tuple[int, ...]) -> bool:
    """Whether the reassignment under way ends with this ISR; see the module."""
    target = partition.target
    staying = [node for node in isr if node in target]
    if not staying or (
        partition.leader != NO_LEADER and terms.takes_none(staying, partition.leader)
    ):
        # Else it would end with a partition that no broker leads.
        return False
    if len(staying) == len(target):
        return True
    original = partition.original
    return (
        all(node in staying for node in partition.adding if node in target)
        and len(target) >= len(original)
        and len(staying) >= sum(node in original for node in isr)
        and len(staying) >= min(terms.min_isr, len(target))
    )


def _eligible(
    partition: PartitionImage, terms: Terms, isr: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """ELR and last known ELR beside an ISR; `partition` has the replicas that are to be."""
    if not terms.has_elr or len(isr) >= min_isr_of(partition, terms):
        return (), ()
    replicas = partition.replicas
    candidates = dict.fromkeys((*partition.elr, *partition.isr))
    elr = tuple(
        node
        for node in candidates
        if node not in isr and node not in terms.lost and node in replicas
    )
    known = dict.fromkeys((*partition.last_known_elr, *candidates))
    return elr, tuple(
        node for node in known if node not in isr and node not in elr and node in replicas
    )


def _last_leader_first(partition: PartitionImage, last_known: tuple[int, ...]) -> tuple[int, ...]:
    """Who led last is remembered as long as there is no ISR, also while it is in the ELR."""
    if partition.leader != NO_LEADER:
        last = partition.leader
    elif not partition.isr and partition.last_known_elr:
        last = partition.last_known_elr[0]
    else:
        return last_known
    if last not in partition.replicas:
        return last_known
    return (last, *(node for node in last_known if node != last))


def _elect(
    partition: PartitionImage, terms: Terms, isr: tuple[int, ...], elr: tuple[int, ...]
) -> _Elected:
    sources = isr or elr
    preferred = partition.replicas[0]
    first = (
        (preferred, partition.leader)
        if terms.election is Election.PREFERRED
        else (partition.leader,)
    )
    for node in (*first, *partition.replicas):
        if node in sources and terms.takes(node, partition.leader):
            return _Elected(node)
    if terms.waits_for(sources):
        return _Elected(NO_LEADER)
    if terms.takes(terms.chosen, partition.leader) and terms.chosen in partition.replicas:
        return _Elected(terms.chosen, is_clean=False)
    if not sources and not partition.isr and terms.recovery is not Recovery.NONE:
        is_alone = terms.has_elr and partition.last_known_elr == partition.replicas == (preferred,)
        if is_alone and terms.takes(preferred, partition.leader):
            # There is no other log to compare with.
            return _Elected(preferred, is_clean=False)
    if terms.election is Election.UNCLEAN:
        others = partition.adding if terms.takes_added else ()
        for node in (*partition.original, *others):
            if terms.takes(node, partition.leader):
                return _Elected(node, is_clean=False)
    return _Elected(NO_LEADER)
