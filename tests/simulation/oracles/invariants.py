"""What must hold in a cluster after every event, whatever has happened to it.

    I1   one process leads a partition in a leader epoch
    I2   a leader of the newest epoch has every record acknowledged with acks=all
    I3   every member of an ISR that is let in has its log up to what was committed
    I4   a leader of the newest epoch counts every member of the ISR, and of none more than it has
    I5   logs are equal, byte for byte, below the high watermarks of both; not where they are
         compacted, which each broker does for itself (K instead)
    I6   the end that clients see never goes back (`latest.py`)
    I7   leader and ISR are replicas, epochs grow by what was changed
    I8   images of one revision are equal on all brokers
    I9   what the controller writes carries the guard of its election
    I10  a broker's validity is over when its lease ends by time
    I11  a group's committed offsets never go back (`groups.py`)
    I12  no log ends below its own high watermark, or remembers batches of producers beyond its end,
         and that of a leader has the epoch in which it leads
    I13  after healing all is led, whole and equal in time (`run.py`)
    I14  what left the disks is in the bucket (`remote/coverage.py`)
    I15  an image shows what the store had at its revision, whatever was refused or unknown
    I16  of a topic that is deleted and made again is read what was written to it, nothing of the
         one before; what was deleted stays so, and leaves no folders and no objects (`lives.py`)
    A    what was acknowledged with acks=all lies below the high watermark
    M    the high watermark stands while the ISR is smaller than `min.insync.replicas`; where that
         was changed, than the least that the leader may know
    D    no log begins above what clients wanted to delete; and that of a leader not below what
         they were told is deleted, if it was in sync then and has not died since
    K    of each key of a compacted topic the newest value stays (`keys.py`)
    U    a topic that may lose records loses them by unclean elections (`oracles/unclean.py`); of it
         is not asked what the others must never do: I5, and I2 and I3 of what was acknowledged
         before the last of these elections
    R    who has a replica of a partition is what was asked for (`oracles/assignments.py`)
    T    transactions of who is gone come to an end, others to none before their time
         (`leavers.py`)
    Q    a throttle makes nobody fall out of sync (`faults/nemesis.py`)
    J    each replica lies once on the disks of its broker, where the store says (`judgement.py`)
    S    what a share group has accepted comes to no member again, all else does (`shares.py`)
    E    who is proposed for the ISR has reached where the leader's epoch began (KAFKA-7128)

The states of the brokers' objects are read, never changed.
"""

from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.metadata_records import LIVE
from broker.controller.images.topic_names import SHARE_GROUP_STATE
from broker.replicas.partition import Partition
from tests.simulation.clients.history import History
from tests.simulation.clients.keys import KEYED
from tests.simulation.clients.losses import LOOSE
from tests.simulation.clients.losses import PLACE as LOOSE_PLACE
from tests.simulation.loop import Process
from tests.simulation.oracles.assignments import Assignments
from tests.simulation.oracles.topic_setting import TopicSetting
from tests.simulation.oracles.unclean import UncleanElections
from tests.simulation.remote.coverage import RemoteCoverage
from tests.simulation.world import Mark, Place, Violation, World

COMPARE_EVERY: Final = 300
"""So many checks for one comparison of logs, byte for byte."""


@dataclass
class _Known:
    """What was seen of a partition so far."""

    committed: int = 0
    high_watermark: int = 0
    leader_epoch: int = -1
    partition_epoch: int = -1
    leaders: dict[int, Process] = field(default_factory=dict)


class Invariants:
    """See the module.

    Attributes:
        checks: How often a broker was looked at.
        every: Handles of a broker between two looks.
    """

    def __init__(self, world: World, history: History, *, min_in_sync: int, every: int = 4) -> None:
        """Ask about a world.

        Args:
            world: Which.
            history: What its clients were told.
            min_in_sync: `min.insync.replicas` of topics that do not set it.
            every: Handles of a broker between two checks.
        """
        self._min_in_sync = TopicSetting(world, "min.insync.replicas", min_in_sync)
        self.checks = 0
        self._world = world
        self._history = history
        self.every = every
        self._shown: dict[Partition, tuple[object, ...]] = {}
        # By topic id: of a topic made anew nothing is known from the one of its name before.
        self._known: dict[tuple[Place, UUID | None], _Known] = {}
        self._images: dict[int, int] = {}
        self._standing: dict[tuple[Place, UUID, Process, int], int] = {}
        self._compared: dict[tuple[Place, UUID, Process, Process], int] = {}
        self._marks: dict[tuple[Process, Place, UUID], Mark] = {}
        self._last_image: dict[int, ClusterImage] = {}
        self.remote: RemoteCoverage | None = None
        self.unclean: UncleanElections | None = None
        self.assignments: Assignments | None = None
        self._store_revision = 0
        self._follows_store = True
        self._image = ClusterImage.empty()

    def forget_store(self) -> None:
        """The store is about to be replaced: what it says is not looked at any more."""
        self._follows_store = False
        self._world.server.store.on_stored = lambda: None

    def stored(self) -> None:
        """I15: images show what is stored, and no change whose outcome was another."""
        image = self._world.image
        self._images.setdefault(image.revision, shown_by(image))
        try:
            if self.assignments is not None:
                self.assignments.stored(image)
            if self.unclean is not None and self.unclean.stored(image):
                known = self._of(LOOSE_PLACE)
                known.high_watermark = known.committed = 0
        except Violation as violation:
            self._world.fail(str(violation))

    def lease_expired(self, keys: list[str]) -> None:
        """I10: the store counts the time of a lease later than its holder."""
        for key in keys:
            if not key.startswith(LIVE):
                continue
            place = self._world.brokers[int(key.removeprefix(LIVE))]
            broker = place.broker
            if not place.is_running or broker is None or broker.membership is None:
                continue
            left_ms = broker.membership.validity.until_ms - place.clock.monotonic_ms()
            if left_ms > 0:
                self._world.fail(
                    f"I10 broker {place.node_id} believes its lease for {left_ms:.0f} ms more"
                )

    def acknowledged(self, place: Place, end: int) -> None:
        """A: a client was told that its records up to `end` are committed."""
        known = self._of(place)
        if end <= known.high_watermark:
            return
        for one in self._world.brokers.values():
            if one.is_running and one.broker is not None:
                replica = one.broker.replicas.replica_of(*place)
                if replica is not None:
                    high_watermark = replica.log.high_watermark
                    known.high_watermark = max(known.high_watermark, high_watermark)
                elif one.is_copied(*place):
                    # Its log has changed directories since it answered, and is not served now.
                    return
        if end > known.high_watermark:
            raise Violation(
                f"A {place}: {end} was acknowledged, {known.high_watermark} is committed"
            )

    def observe(self, process: Process) -> None:
        """After handles of a broker: what only clients did has changed none."""
        self.check(process.node_id)

    def check(self, node_id: int) -> None:
        """What may have changed by what a broker did.

        Raises:
            Violation: Something does not hold.
        """
        self.checks += 1
        self._check_store()
        place = self._world.brokers[node_id]
        broker = place.broker
        if place.is_running and broker is not None and broker.controller is not None:
            self._check_image(node_id, broker.controller.image)
            for partition in broker.replicas.partitions():
                if self._has_changed(partition):
                    self._check_everywhere(Place(*partition.topic_partition))
        if self.remote is not None and self.remote.shrunk:
            for where in sorted(self.remote.shrunk):
                self._check_everywhere(where)
            self.remote.shrunk.clear()
        if self.checks % COMPARE_EVERY == 0:
            self.compare_logs()

    def _has_changed(self, partition: Partition) -> bool:
        """Whether a replica, what it counts, or what is asked of it differs from the last look."""
        log, leading = partition.log, partition.leading
        # A partition's name is equal to its `Place`.
        acked_end: dict[Any, int] = self._history.acked_end
        shown: tuple[object, ...] = (
            log.log_end_offset,
            log.high_watermark,
            log.log_start_offset,
            log.local_log_start_offset,
            partition.leader_epoch,
            acked_end.get(partition.topic_partition, 0),
            self._store_revision,
        )
        if leading is not None:
            shown = (
                shown,
                leading.isr,
                leading.proposed,
                [(one.end_offset, one.is_counted) for one in leading.followers],
            )
        if self._shown.get(partition) == shown:
            return False
        self._shown[partition] = shown
        return True

    def _check_everywhere(self, where: Place) -> None:
        for place in self._world.brokers.values():
            broker = place.broker
            if place.is_running and broker is not None and broker.controller is not None:
                partition = broker.replicas.replica_of(*where)
                if partition is not None:
                    self._check_partition(place.node_id, place.process, partition)

    def _of(self, place: Place) -> _Known:
        topic = self._world.image.topics.get(place.topic)
        return self._known.setdefault((place, None if topic is None else topic.topic_id), _Known())

    # -- the store -------------------------------------------------------------------------------

    def _check_store(self) -> None:
        image = self._world.image
        if image.revision == self._store_revision or not self._follows_store:
            return
        self._store_revision = image.revision
        before, self._image = self._image, image
        for topic in image.topics.values():
            former = before.topics.get(topic.name)
            self._min_in_sync.note(topic.name)
            if former is not None and former.partitions is topic.partitions:
                continue
            for partition in topic.partitions:
                place = Place(topic.name, partition.index)
                known = self._of(place)
                wrong = None
                if partition.leader >= 0 and partition.leader not in partition.isr:
                    wrong = "its leader is not in sync"
                elif not set(partition.isr) <= set(partition.replicas):
                    wrong = "its ISR has others than its replicas"
                elif set(partition.isr) & set(partition.elr):
                    wrong = "ISR and ELR have a member in common"
                elif partition.leader_epoch < known.leader_epoch:
                    wrong = f"its leader epoch was {known.leader_epoch}"
                elif partition.partition_epoch < known.partition_epoch:
                    wrong = f"its partition epoch was {known.partition_epoch}"
                if wrong is not None:
                    raise Violation(f"I7 {place}: {wrong}: {partition}")
                known.leader_epoch = partition.leader_epoch
                known.partition_epoch = partition.partition_epoch

    def _check_image(self, node_id: int, image: ClusterImage) -> None:
        if self._last_image.get(node_id) is image:
            return
        self._last_image[node_id] = image
        shown = shown_by(image)
        if self._images.setdefault(image.revision, shown) != shown:
            raise Violation(
                f"I8, I15 broker {node_id} has another image of revision {image.revision}"
            )

    # -- partitions ------------------------------------------------------------------------------

    def _check_partition(self, node_id: int, process: Process, partition: Partition) -> None:
        place = Place(*partition.topic_partition)
        log = partition.log
        end, high_watermark = log.log_end_offset, log.high_watermark
        if end < high_watermark:
            raise Violation(f"I12 {place} on {node_id} ends at {end}, below {high_watermark}")
        _check_end(node_id, place, partition)
        known = self._known.setdefault((place, partition.topic_id), _Known())
        if partition.is_leader:
            epoch = partition.leader_epoch
            leader = known.leaders.setdefault(epoch, process)
            if leader is not process:
                raise Violation(
                    f"I1 {place} epoch {epoch} is led by {process.name} and {leader.name}"
                )
        topic = self._world.image.topics.get(place.topic)
        if self._follows_store if topic is None else topic.topic_id != partition.topic_id:
            return  # Of a deleted topic of this name: the store says nothing of it.
        is_newest = partition.is_leader and epoch == known.leader_epoch
        if self.unclean is not None and place == LOOSE_PLACE and is_newest:
            self.unclean.leads(partition)
        if self.remote is not None:
            # A replica of another lineage than its leader's knows nothing of what that removes.
            if place != LOOSE_PLACE or is_newest:
                self.remote.check(node_id, place, partition)
        else:
            self._check_start(node_id, place, partition)
        if partition.is_leader:
            if epoch == known.leader_epoch:
                self._check_counted(node_id, place, partition)
            acked_end = self._history.acked_end[place]
            if epoch == known.leader_epoch and end < acked_end:
                raise Violation(
                    f"I2 {place} is led in epoch {epoch} by {node_id}, whose log ends at {end}; "
                    f"{acked_end} was acknowledged"
                )
        known.high_watermark = max(known.high_watermark, high_watermark)
        known.committed = max(known.committed, self._history.acked_end[place])
        if end < known.committed:
            stored = self._image.partition(*place)
            if stored is not None and node_id in stored.isr and self._is_let_in(node_id):
                raise Violation(
                    f"I3 {place}: {node_id} is in sync and ends at {end}, "
                    f"{known.committed} was acknowledged"
                )

    def _check_start(self, node_id: int, place: Place, partition: Partition) -> None:
        """D: a log begins where somebody wanted it to, and where clients were told that it does."""
        if place.topic == SHARE_GROUP_STATE:
            return  # Its coordinator deletes what later records have replaced.
        start = partition.log.log_start_offset
        if start > self._history.trimmed[place]:
            raise Violation(
                f"D {place} on {node_id} begins at {start}; records before "
                f"{self._history.trimmed[place]} were to be deleted"
            )
        deleted, processes = self._history.deleted[place]
        name = self._world.brokers[node_id].process.name
        if start < deleted and partition.is_leader and name in processes:
            raise Violation(
                f"D {place} is led in epoch {partition.leader_epoch} by {name} and begins at "
                f"{start}; {deleted} was said to be its start"
            )

    def _check_counted(self, node_id: int, place: Place, partition: Partition) -> None:
        """I4: the high watermark waits for whom it must."""
        leading, stored = partition.leading, self._image.partition(*place)
        if leading is None or stored is None or stored.leader != node_id:
            return
        high_watermark = partition.log.high_watermark
        minima = self._min_in_sync.lately(place.topic)
        process = self._world.brokers[node_id].process
        term = (place, partition.topic_id, process, leading.partition_epoch)
        # Those that are still being added are not asked for.
        if len(leading.isr) >= min(*minima, leading.replication_factor):
            self._standing.pop(term, None)
        else:
            before = self._standing.setdefault(term, high_watermark)
            if high_watermark > before:
                raise Violation(
                    f"M {place}: {node_id} moved the high watermark from {before} to "
                    f"{high_watermark} with an ISR of {leading.isr}"
                )
        for progress in leading.followers:
            if (
                progress.node_id in (leading.proposed or ())
                and progress.node_id not in leading.isr
                and progress.end_offset < leading.epoch_start_offset
            ):
                raise Violation(
                    f"E {place}: {node_id} proposes {progress.node_id}, which is at "
                    f"{progress.end_offset} of {leading.epoch_start_offset}"
                )
        counted = {one.node_id for one in leading.followers if one.is_counted} | {node_id}
        if len(stored.isr) >= max(minima) and not counted.issuperset(stored.isr):
            raise Violation(f"I4 {place}: {node_id} counts {sorted(counted)} of {stored}")
        for progress in leading.followers:
            follower = self._world.brokers[progress.node_id]
            broker = follower.broker
            if (
                not follower.is_running
                or broker is None
                or broker.membership is None
                or broker.membership.broker_epoch != progress.broker_epoch
            ):
                continue
            replica = broker.replicas.replica_of(*place)
            # An empty log that began at a log start, within a batch, begins again where that batch
            # does, with it (`log_repair`); the leader's own start may be an earlier one, if the
            # power went before it was on its disk.
            begins = replica is not None and (
                progress.end_offset == partition.log.log_start_offset
                or replica.log.log_start_offset == replica.log.log_end_offset
            )
            if (
                replica is not None
                and replica.topic_id == partition.topic_id
                and (progress.is_counted or not begins)
                and replica.leader_epoch == partition.leader_epoch
                and replica.log.log_end_offset < progress.end_offset
            ):
                raise Violation(
                    f"I4 {place}: {node_id} counts {progress.node_id} up to "
                    f"{progress.end_offset}, whose log ends at {replica.log.log_end_offset}"
                )

    def _is_let_in(self, node_id: int) -> bool:
        broker = self._world.brokers[node_id].broker
        return (
            broker is not None
            and broker.membership is not None
            and broker.membership.is_let_in(self._image)
        )

    def compare_logs(self) -> None:
        """I5, for all replicas that are open."""
        replicas: dict[tuple[Place, UUID], list[tuple[int, Partition]]] = {}
        for place in self._world.brokers.values():
            if place.is_running and place.broker is not None:
                for partition in place.broker.replicas.partitions():
                    where = Place(*partition.topic_partition)
                    replicas.setdefault((where, partition.topic_id), []).append(
                        (place.node_id, partition)
                    )
        for (where, topic_id), several in replicas.items():
            if where.topic == KEYED:
                continue
            if where.topic == LOOSE and self.unclean is not None:
                for node_id, partition in several:
                    self.unclean.look(node_id, partition)
                continue
            (first_id, first), *others = several
            for other_id, other in others:
                end = min(first.log.high_watermark, other.log.high_watermark)
                start = max(first.log.local_log_start_offset, other.log.local_log_start_offset)
                # What was equal stays so, while both are the same processes.
                pair = (
                    where,
                    topic_id,
                    self._world.brokers[first_id].process,
                    self._world.brokers[other_id].process,
                )
                start = max(start, self._compared.get(pair, 0))
                if start >= end:
                    continue
                self._compared[pair] = end
                one = self._new_batches(first_id, where, topic_id, start, end)
                two = self._new_batches(other_id, where, topic_id, start, end)
                if one != two:
                    raise Violation(
                        f"I5 {where}: {first_id} and {other_id} differ below {end}: "
                        f"{difference(one, two)}"
                    )

    def _new_batches(
        self, node_id: int, where: Place, topic_id: UUID, start: int, end: int
    ) -> dict[int, bytes]:
        """Batches of a replica, looked for from where the last look has ended."""
        key = (self._world.brokers[node_id].process, where, topic_id)
        found, self._marks[key] = self._world.batches_from(
            self._marks.get(key), node_id, where, start, end
        )
        return found


def _check_end(node_id: int, place: Place, partition: Partition) -> None:
    """I12: what a log remembers ends where its batches do."""
    log = partition.log
    if log.is_rolling_back or log.failure is not None:
        # A write has failed. Nothing is answered by the producers' state before it is read
        # again as of the log's end (`storage.log.rollback`), or before the next start.
        if log.refusal is None:
            raise Violation(f"I12 {place} on {node_id} takes records while it goes back")
        return
    for entry in log.producer_state.active_producers():
        if entry.last_data_offset >= log.next_offset:
            raise Violation(
                f"I12 {place} on {node_id} ends at {log.next_offset}, its producer "
                f"{entry.producer_id} at {entry.last_data_offset}"
            )
    if partition.is_leader and log.latest_leader_epoch != partition.leader_epoch:
        raise Violation(
            f"I12 {place} on {node_id} is led in epoch {partition.leader_epoch}, its log is in "
            f"{log.latest_leader_epoch}"
        )


def shown_by(image: ClusterImage) -> int:
    """A hash of what an image says of brokers and partitions."""
    return hash(
        (
            image.controller_id,
            tuple(sorted((b.node_id, b.epoch, b.is_fenced) for b in image.brokers.values())),
            tuple(
                (name, topic.topic_id, tuple(topic.partitions))
                for name, topic in sorted(image.topics.items())
            ),
        )
    )


def difference(one: dict[int, bytes], two: dict[int, bytes]) -> str:
    """The first batch that is not the same."""
    for offset in sorted({*one, *two}):
        if one.get(offset) != two.get(offset):
            return f"at {offset}: {one.get(offset)!r} and {two.get(offset)!r}"
    return "nothing"
