"""One partition's next record: ISR, eligible leader replicas, leader, and their epochs.

    new ISR ──> ELR: |ISR| below min.insync.replicas keeps who left it as eligible (KIP-966)
            ──> leader: stays while it is valid, else the first valid one in order of replicas
                  valid            in the ISR; or in the ELR while the ISR is empty
                  none is          the last known leader, where ISR and ELR are empty
                  none of these    any replica, if unclean elections are allowed; else no leader
            ──> leader epoch + 1 if the leader is another, partition epoch + 1 if anything is

A leader from the ELR makes the ISR itself alone; one elected uncleanly (the last known leader, or
any replica) also makes the partition RECOVERING, and what the others had is lost.

Source: Kafka 4.2, PartitionChangeBuilder.java; KIP-966; KAFKA-19522 (the last known leader has to
be alive, too).
"""

import enum
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from broker.controller.images.partition_image import NO_LEADER, PartitionImage

NOBODY: Final[frozenset[int]] = frozenset()


class Election(enum.Enum):
    """Who may become leader."""

    ONLINE = "any replica in sync"
    PREFERRED = "the first replica, if it is in sync"
    UNCLEAN = "any replica"


@dataclass(frozen=True, slots=True)
class Terms:
    """What elections of a topic go by.

    Attributes:
        may_lead: Brokers that are let in and do not want to stop.
        min_isr: `min.insync.replicas` of the topic, at most its replicas.
        election: Who may become leader.
        lost: Brokers whose logs may lack what they had: they leave ISR and ELR.
        has_elr: Eligible leader replicas are kept; else the last ISR is.
    """

    may_lead: Collection[int]
    min_isr: int
    election: Election = Election.ONLINE
    lost: Collection[int] = NOBODY
    has_elr: bool = True


class _Elected(NamedTuple):
    leader: int
    is_clean: bool = True


def changed(
    partition: PartitionImage,
    terms: Terms,
    *,
    isr: Iterable[int] | None = None,
    is_recovering: bool | None = None,
) -> PartitionImage:
    """The partition with another ISR, and what follows from it; the same object if nothing does.

    Args:
        partition: As it stands.
        terms: See there.
        isr: The ISR it is to have; None: as it is. Order is kept.
        is_recovering: What the leader says of its recovery; None: as it is.
    """
    wanted = partition.isr if isr is None else tuple(isr)
    wanted = tuple(node for node in wanted if node not in terms.lost)
    if not terms.has_elr and not wanted:
        wanted = partition.isr
    elr, last_known = _eligible(partition, terms, wanted)
    elected = _elect(partition, terms, wanted, elr)
    recovering = partition.is_recovering if is_recovering is None else is_recovering
    leader = elected.leader
    if leader != partition.leader and leader != NO_LEADER:
        if not elected.is_clean:
            wanted, elr, last_known, recovering = (leader,), (), (), True
        elif leader in elr:
            wanted, elr = (leader,), tuple(node for node in elr if node != leader)
            last_known = tuple(node for node in last_known if node != leader)
            if len(wanted) >= terms.min_isr:
                elr = last_known = ()
    if terms.has_elr and not wanted:
        last_known = _last_leader_first(partition, last_known)
    new = replace(
        partition,
        leader=leader,
        isr=wanted,
        elr=elr,
        last_known_elr=last_known,
        is_recovering=recovering,
    )
    if new == partition:
        return partition
    return replace(
        new,
        leader_epoch=partition.leader_epoch + (leader != partition.leader),
        partition_epoch=partition.partition_epoch + 1,
    )


def _eligible(
    partition: PartitionImage, terms: Terms, isr: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """ELR and last known ELR beside an ISR."""
    if not terms.has_elr or len(isr) >= terms.min_isr:
        return (), ()
    candidates = dict.fromkeys((*partition.elr, *partition.isr))
    elr = tuple(node for node in candidates if node not in isr and node not in terms.lost)
    known = dict.fromkeys((*partition.last_known_elr, *candidates))
    return elr, tuple(node for node in known if node not in isr and node not in elr)


def _last_leader_first(partition: PartitionImage, last_known: tuple[int, ...]) -> tuple[int, ...]:
    """Who led last is remembered as long as there is no ISR, also while it is in the ELR."""
    if partition.leader != NO_LEADER:
        last = partition.leader
    elif not partition.isr and partition.last_known_elr:
        last = partition.last_known_elr[0]
    else:
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
        if node in sources and node in terms.may_lead:
            return _Elected(node)
    if not sources and terms.has_elr and not partition.isr and partition.last_known_elr:
        last = partition.last_known_elr[0]
        if last in terms.may_lead:
            return _Elected(last, is_clean=False)
    if terms.election is Election.UNCLEAN:
        for node in partition.replicas:
            if node in terms.may_lead:
                return _Elected(node, is_clean=False)
    return _Elected(NO_LEADER)
