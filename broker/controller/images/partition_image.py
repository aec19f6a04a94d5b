"""Partition image: replicas, leader, and in-sync replicas of one partition.

The fields that a single node never fills have their defaults there, and cost nothing in the store.

Source: KIP-497 (partition epoch), KIP-704 (recovery state), KIP-858 (directories), KIP-966 (ELR).
"""

from dataclasses import dataclass, replace
from typing import Final
from uuid import UUID

from storage.types.uuid_text import NIL

NO_LEADER: Final = -1
"""The leader of a partition that has none."""


@dataclass(frozen=True, slots=True)
class PartitionImage:
    """One partition: its replicas and leader.

    Attributes:
        index: 0 upwards, without gaps.
        leader: Node id, `NO_LEADER` without a leader.
        leader_epoch: Grows with every change of the leader; 0 at creation (KIP-101).
        partition_epoch: Grows with every change of this record; 0 at creation (KIP-497).
        replicas: Node ids in order of preference.
        isr: Those of them that are in sync.
        directories: Log directory of each replica (KIP-858); empty: not known yet, `NIL` for one
            that is not.
        elr: Replicas outside the ISR that hold every committed record, and may lead once the ISR
            is empty (KIP-966).
        last_known_elr: Replicas that were in ISR or ELR and no longer are, since the ISR fell below
            `min.insync.replicas`; without an ISR the last leader comes first.
        is_recovering: The leader was elected uncleanly and has not caught up with that yet.
        adding: Replicas that were not there before the reassignment under way (KIP-455).
        removing: Replicas that go when it is complete; some of them may have been added by it, and
            then not be wanted any more.
    """

    index: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    directories: tuple[UUID, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()
    is_recovering: bool = False
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def is_reassigning(self) -> bool:
        """Whether a reassignment is under way."""
        return bool(self.adding or self.removing)

    @property
    def original(self) -> tuple[int, ...]:
        """The replicas of before the reassignment under way: those it goes back to."""
        if not self.adding:
            return self.replicas
        return tuple(node for node in self.replicas if node not in self.adding)

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas of after the reassignment under way."""
        if not self.removing:
            return self.replicas
        return tuple(node for node in self.replicas if node not in self.removing)

    def keeping(self, replicas: tuple[int, ...]) -> "PartitionImage":
        """The same with some of its replicas, in this order, and no reassignment under way."""
        known = dict(zip(self.replicas, self.directories, strict=False))
        directories = tuple(known.get(node, NIL) for node in replicas)
        if all(directory == NIL for directory in directories):
            directories = ()
        return replace(self, replicas=replicas, directories=directories, adding=(), removing=())

    def directory_on(self, node_id: int) -> UUID | None:
        """The log directory of a node's replica; None: not known, or none there."""
        for node, directory in zip(self.replicas, self.directories, strict=False):
            if node == node_id and directory != NIL:
                return directory
        return None

    def placed(self, node_id: int, directory_id: UUID | None) -> "PartitionImage":
        """The same with another log directory of a node's replica; None: not known."""
        known = dict(zip(self.replicas, self.directories, strict=False))
        known[node_id] = NIL if directory_id is None else directory_id
        directories = tuple(known.get(node, NIL) for node in self.replicas)
        return replace(self, directories=directories if any(d != NIL for d in directories) else ())
