"""The roles of the partitions that are open here: what the newest image wants, and nothing older.

    image ──in its turn──> those led here no longer: at once
      │              └───> all other changes: a queue, in slices of the loop
      └── a log is open ──> its role, at once

                    ┌───────────<─────────── leader again, or in a later epoch ────<───┐
                    v                                                                  │
    NO ROLE ──> LEADER (epoch) ──another leads, or none────> FOLLOWER (leader, epoch) ─┤
      ^  └──────────────────────────────────────────────────────^   └──later epoch──>──┘
      └── this broker is fenced, or is no replica any more <── from LEADER and FOLLOWER

A broker has roles only while the image lets this life of its process in: one that was killed and
started again must not lead in an epoch in which it has led before (KAFKA-10527). A leader whose log
has a later epoch than the image gives it does not lead, and says so: the metadata store is older
than the log, and two different records could get one name.

Wanted roles are read from the image when their turn comes. An image that was overtaken by another
is never acted on, and a change that was lost with an error is made up for with the next image.

Source: Kafka, ReplicaManager.applyDelta.
"""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from broker.replicas.partition_queue import PartitionQueue
from protocol.error_codes import ErrorCode
from storage.types.uuid_text import NIL

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage
    from broker.controller.images.partition_image import PartitionImage
    from broker.membership.membership import Membership
    from broker.replicas.partition import Partition
    from broker.replicas.replica_manager import ReplicaManager
    from broker.replication.leader_state import Proposal
    from storage.environment.clock import Clock
    from storage.types.topic_partition import TopicPartition

LOGGER = logging.getLogger(__name__)

NO_LEADER: Final = -1


class RoleListener(Protocol):
    """What follows roles: coordinators, remote storage."""

    def on_elected(self, partition: "Partition", leader_epoch: int) -> None:
        """It is led here from now on, in this epoch; perhaps as it was before."""
        ...

    def on_followed(self, partition: "Partition", leader_epoch: int) -> None:
        """Another broker or none leads it in this epoch; perhaps it was led here."""
        ...

    def on_resigned(self, partition: "Partition") -> None:
        """It has no role here any more."""
        ...

    def on_refused(self, partition: "Partition", reason: str) -> None:
        """It is not led here although the image says so."""
        ...


class Fetchers(Protocol):
    """Fetch from the leaders of what is followed here."""

    def follow(self, partition: "Partition", leader_id: int) -> None:
        """Fetch a partition from a broker from now on, in the partition's leader epoch."""
        ...

    def unfollow(self, partition: "Partition") -> None:
        """Fetch it no longer; nothing happens if it is not fetched."""
        ...


class NoFetchers:
    """Of a node that is alone: it follows nothing."""

    def follow(self, partition: "Partition", leader_id: int) -> None:
        """Say that it is not fetched: it stays behind."""
        LOGGER.error(
            "partition is not fetched: a single node has no followers partition=%s leader=%d",
            partition.topic_partition,
            leader_id,
        )

    def unfollow(self, partition: "Partition") -> None:
        """Nothing is fetched."""


class RoleReconciler:
    """See the module. On the loop's thread; waits for nothing, and for no disk."""

    def __init__(
        self,
        node_id: int,
        *,
        image: "Callable[[], ClusterImage]",
        membership: "Membership",
        replicas: "ReplicaManager",
        listener: RoleListener,
        fetchers: Fetchers,
        call_soon: Callable[[Callable[[], None]], object],
        clock: "Clock",
    ) -> None:
        """Subscribe `apply` to images, to be called in their turn, and call `opened` for each log.

        Args:
            node_id: Of this broker.
            image: The newest.
            membership: Names this life of the process.
            replicas: The partitions that are open here.
            listener: Follows the roles.
            fetchers: Fetch what is followed.
            call_soon: The event loop's.
            clock: Bounds the slices.
        """
        self._node_id = node_id
        self._image = image
        self._membership = membership
        self._replicas = replicas
        self._listener = listener
        self._fetchers = fetchers
        self._clock = clock
        # What was applied last; partitions without a role are not in it.
        self._taken: dict[Partition, PartitionImage] = {}
        # What leaders that were closed had asked the controller for, with no answer yet.
        self._proposed: dict[TopicPartition, Proposal] = {}
        self._queue = PartitionQueue(self._take_safely, call_soon, clock)
        self._was_let_in = False

    @property
    def due(self) -> int:
        """Partitions whose roles are to be looked at."""
        return len(self._queue)

    def apply(self, old: "ClusterImage", new: "ClusterImage") -> None:
        """Follow an image in the turn in which it came."""
        if self._membership.is_let_in(new) != self._was_let_in:
            self.review()
            return
        replicas = self._replicas
        for name, topic in new.topics.items():
            before = old.topics.get(name)
            if before is topic:
                continue
            for index in range(len(topic.partitions)):
                partition = replicas.replica_of(name, index)
                if partition is not None:
                    self._look_at(partition)
        self._queue.run()

    def review(self) -> None:
        """Look at every partition again: something beside the partitions' records has changed."""
        self._was_let_in = self._membership.is_let_in(self._image())
        for partition in list(self._replicas.partitions()):
            self._look_at(partition)
        self._queue.run()

    def opened(self, partition: "Partition") -> None:
        """Give a partition whose log has just been opened its role."""
        self._take_safely(partition)

    def close(self, topic_partitions: "Iterable[TopicPartition]", code: ErrorCode) -> None:
        """Close partitions whose log directory has failed, or whose logs are being replaced.

        Those that are not open are passed over. What waits for them is answered with `code`.
        """
        for one in topic_partitions:
            partition = self._replicas.replica_of(*one)
            if partition is not None:
                self._keep_proposal(partition)
                self._replicas.remove_partition(partition, code)
                self._fetchers.unfollow(partition)
                self._queue.discard(partition)
                if self._taken.pop(partition, None) is not None:
                    self._listener.on_resigned(partition)

    def close_topic(self, name: str) -> "list[Partition]":
        """Close the partitions of a topic that was deleted; its listeners hear of that otherwise.

        Returns:
            Those that were open here, for their logs to be deleted.
        """
        closed = self._replicas.remove_topic(name)
        for partition in closed:
            self._fetchers.unfollow(partition)
            self._queue.discard(partition)
            self._taken.pop(partition, None)
        for one in [one for one in self._proposed if one.topic == name]:
            del self._proposed[one]
        return closed

    # -- one partition ---------------------------------------------------------------------------

    def _look_at(self, partition: "Partition") -> None:
        """End what must end now; queue the rest."""
        wanted = self._wanted(partition)
        taken = self._taken.get(partition)
        if wanted is None and taken is None:
            return
        if taken is not None and taken.leader == self._node_id:
            if wanted is None or wanted.leader != self._node_id:
                self._queue.discard(partition)
                self._take_safely(partition)
                return
        elif taken is not None and wanted is not None and _is_same_role(taken, wanted):
            # Changes of the ISR are the leader's.
            self._taken[partition] = wanted
            partition.is_added = self._node_id in wanted.adding
            return
        self._queue.add(partition)

    def _wanted(self, partition: "Partition") -> "PartitionImage | None":
        """The partition's record if it is to have a role here."""
        image = self._image()
        topic, index = partition.topic_partition
        found = image.topics.get(topic)
        if found is None or index >= len(found.partitions):
            return None
        if partition.topic_id not in (found.topic_id, NIL) or not self._membership.is_let_in(image):
            return None
        wanted = found.partitions[index]
        return wanted if self._node_id in wanted.replicas else None

    def _take_safely(self, partition: "Partition") -> None:
        try:
            self._take(partition)
        except Exception:  # whatever it is, the other partitions get their roles
            LOGGER.exception("role not taken partition=%s", partition.topic_partition)

    def _take_after_truncation(self, partition: "Partition") -> None:
        if self._replicas.replica_of(*partition.topic_partition) is partition:
            self._take_safely(partition)

    def _take(self, partition: "Partition") -> None:
        if partition.is_truncating:
            # Until a thread has ended with the log nothing else may touch it. What its role is to
            # be then is asked then.
            partition.when_truncated(partial(self._take_after_truncation, partition))
            return
        wanted = self._wanted(partition)
        if wanted is None:
            self._end(partition)
            return
        taken = self._taken.get(partition)
        if taken is not None and _is_same_role(taken, wanted):
            self._taken[partition] = wanted
            if wanted.leader == self._node_id and wanted.partition_epoch > taken.partition_epoch:
                partition.update_isr(wanted)
            return
        if wanted.leader == self._node_id:
            self._lead(partition, wanted)
        else:
            self._follow(partition, wanted)

    def _lead(self, partition: "Partition", wanted: "PartitionImage") -> None:
        latest = partition.log.leader_epochs.latest_epoch
        if latest is not None and latest > wanted.leader_epoch and self._membership.broker_epoch:
            self._end(partition)
            self._listener.on_refused(
                partition,
                f"its log has leader epoch {latest}, and the metadata store gives it the earlier "
                f"{wanted.leader_epoch}: the store is older than the log, so the partition is not "
                "led here. Another replica may lead it once this broker is stopped; else stop all "
                "brokers and run `varve cluster recover-metadata`",
            )
            return
        self._fetchers.unfollow(partition)
        proposed = self._proposed.pop(partition.topic_partition, None)
        partition.become_leader(wanted, now_ms=self._clock.monotonic_ms(), proposed=proposed)
        self._replicas.lead(partition)
        self._taken[partition] = wanted
        self._listener.on_elected(partition, wanted.leader_epoch)

    def _follow(self, partition: "Partition", wanted: "PartitionImage") -> None:
        self._proposed.pop(partition.topic_partition, None)
        self._replicas.stop_leading(partition)
        self._taken[partition] = wanted
        partition.is_added = self._node_id in wanted.adding
        partition.become_follower(wanted.leader, wanted.leader_epoch)
        self._listener.on_followed(partition, wanted.leader_epoch)
        if wanted.leader == NO_LEADER:
            self._fetchers.unfollow(partition)
        else:
            self._fetchers.follow(partition, wanted.leader)

    def _keep_proposal(self, partition: "Partition") -> None:
        """The controller may have agreed: led again in the same epoch, it counts from the start."""
        proposal = partition.proposal
        if proposal is not None:
            self._proposed[partition.topic_partition] = proposal

    def _end(self, partition: "Partition") -> None:
        """Leave the partition without a role; it stays open."""
        if self._taken.pop(partition, None) is None:
            return
        self._keep_proposal(partition)
        self._replicas.stop_leading(partition)
        self._fetchers.unfollow(partition)
        partition.resign(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._listener.on_resigned(partition)


def _is_same_role(one: "PartitionImage", other: "PartitionImage") -> bool:
    """Whether leader and leader epoch are the same, whatever the ISR is."""
    return one.leader == other.leader and one.leader_epoch == other.leader_epoch
