"""U: unclean elections of a topic that allows them, as the store has them, and its logs.

    nobody who was in sync or eligible    is fit to lead, and has been for a session: else who
                                          was elected loses records that another one has
    at an offset in a leader epoch        all replicas have the same record, also behind their
                                          high watermarks, which may go back in such a topic

The store is asked after each of its changes, logs when they are compared.
"""

from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.controller.images.replica_directories import replicas_offline
from broker.replicas.partition import Partition
from tests.simulation.clients.losses import PLACE, LossHistory, records_of
from tests.simulation.loop import Process
from tests.simulation.oracles.topic_setting import HEARD_S
from tests.simulation.world import Mark, Violation, World


class UncleanElections:
    """See the module."""

    def __init__(self, world: World, losses: LossHistory) -> None:
        session_ms = world.brokers[1].settings["broker_session_timeout_ms"]
        assert isinstance(session_ms, int)
        self._heard_s = session_ms / 1000 + HEARD_S
        self._world = world
        self._losses = losses
        self._fit_since: dict[int, float] = {}
        self._before: PartitionImage | None = None
        self._elected_epoch = -1
        self._marks: dict[tuple[Process, UUID, int], Mark] = {}

    def stored(self, image: ClusterImage) -> bool:
        """Look at a new image of the store; whether it has an unclean election.

        Raises:
            Violation: Another broker could have led.
        """
        before, now = self._before, image.partition(*PLACE)
        self._before = now
        is_unclean = (
            before is not None
            and now is not None
            and now.leader not in (before.leader, NO_LEADER, *before.isr, *before.elr)
            and not _ends_reassignment(before, now)
        )
        if is_unclean and before is not None and now is not None:
            self._losses.lost()
            self._elected_epoch = now.leader_epoch
            self._check_nobody_could(image, before)
        self._note_fit(image)
        return is_unclean

    def _check_nobody_could(self, image: ClusterImage, before: PartitionImage) -> None:
        offline = replicas_offline(image, before)
        since_s = self._world.loop.time() - self._heard_s
        for node in before.isr or before.elr:
            if node not in offline and self._fit_since.get(node, since_s + 1) < since_s:
                raise Violation(
                    f"U {PLACE}: {self._before} was elected, {node} could have led {before}"
                )

    def _note_fit(self, image: ClusterImage) -> None:
        fit = {
            node
            for node, broker in image.brokers.items()
            if broker.is_live and not broker.is_fenced and not broker.is_draining
        }
        now_s = self._world.loop.time()
        self._fit_since = {node: self._fit_since.get(node, now_s) for node in fit}

    def leads(self, partition: Partition) -> None:
        """Note what a leader that was elected uncleanly has, the first time it leads in its epoch.

        Of what is in the bucket is known what was there in its leader epochs.
        """
        leading = partition.leading
        if leading is None or partition.leader_epoch != self._elected_epoch:
            return
        self._elected_epoch = -1
        log, losses = partition.log, self._losses
        for offset in range(log.log_start_offset, leading.epoch_start_offset):
            epoch = log.leader_epochs.epoch_for_offset(offset)
            value = None if epoch is None else losses.seen.get((offset, epoch))
            if value is not None:
                losses.kept[offset] = value

    def look(self, node_id: int, partition: Partition) -> None:
        """Look at what is new in a replica's log.

        Raises:
            Violation: It has another record than others had at the same place.
        """
        world = self._world
        key = (world.brokers[node_id].process, partition.topic_id, partition.log.generation)
        mark = self._marks.get(key)
        start = 0 if mark is None else mark.offset
        found, self._marks[key] = world.batches_from(
            mark, node_id, PLACE, start, partition.log.log_end_offset
        )
        for batch in found.values():
            for offset, epoch, value in records_of(memoryview(batch)):
                self._losses.saw(offset, epoch, value)


def _ends_reassignment(before: PartitionImage, now: PartitionImage) -> bool:
    """Whether the change that put a new replica into the ISR also had it lead: all were in sync."""
    moves = bool(before.adding or before.removing)
    return moves and not now.adding and not now.removing and not {*before.isr}.isdisjoint(now.isr)
