"""What the store was made to say of partitions, revision by revision, and whether it may.

two-leaders        one leader epoch of a partition has two leaders
epoch-went-back    a leader epoch or a partition epoch is smaller than before
record-insane      a leader outside the ISR, an ISR outside the replicas, ISR and ELR that overlap
write-by-nobody    partitions changed while there was no controller
"""

import asyncio
import contextlib
from collections.abc import Iterator, Sequence

from broker.controller.images.metadata_records import (
    CONTROLLER_KEY,
    PARTITIONS,
    decode_partitions,
    parse_partitions_key,
)
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.controller.store.etcd.access import EtcdAccess
from broker.controller.store.etcd.etcd_store import EtcdStore
from broker.controller.store.metadata_store import Changes, CompactedError, EventKind
from tests.checker.anomalies.anomaly import Anomaly

READ_S = 60.0


class StoreHistory:
    """Follows a store's changes in order; `findings` is what must never be.

    Attributes:
        revision: The last one that was taken in.
        changes: Changes of partitions so far.
        elections: Those that brought another leader or leader epoch.
        controllers: How many controllers there were.
    """

    def __init__(self) -> None:
        self.revision = 0
        self.changes = 0
        self.elections = 0
        self.controllers = 0
        self.findings: list[Anomaly] = []
        self._is_controlled = False
        self._partitions: dict[tuple[str, int], PartitionImage] = {}
        self._leaders: dict[tuple[str, int, int], int] = {}

    def read(self, endpoints: Sequence[str]) -> None:
        """Take in all that has happened since the last call.

        Raises:
            CompactedError: The store has forgotten some of it.
        """
        asyncio.run(self._read(tuple(endpoints)))

    async def _read(self, endpoints: tuple[str, ...]) -> None:
        store = await EtcdStore.open(EtcdAccess(endpoints))
        watch = store.watch("", self.revision + 1)
        try:
            async with asyncio.timeout(READ_S):
                newest = (await store.range(CONTROLLER_KEY, limit=1)).revision
                await watch.request_progress()
                while self.revision < newest:
                    self.take(await anext(watch))
        except CompactedError:
            self.findings.append(
                Anomaly("history-gap", f"the store has compacted what followed {self.revision}")
            )
            raise
        finally:
            with contextlib.suppress(Exception):
                await watch.aclose()
            await store.aclose()

    def take(self, changes: Changes) -> None:
        """One revision."""
        was_controlled = self._is_controlled
        touched = False
        for event in changes.events:
            if event.key == CONTROLLER_KEY:
                self._is_controlled = event.kind is EventKind.PUT
                self.controllers += self._is_controlled
            elif event.key.startswith(PARTITIONS):
                touched = True
                self._take_chunk(event.key, None if event.current is None else event.current.value)
        if touched and not (was_controlled or self._is_controlled):
            self.findings.append(
                Anomaly("write-by-nobody", f"revision {changes.revision} changed partitions")
            )
        self.revision = max(self.revision, changes.revision)

    def _take_chunk(self, key: str, value: bytes | None) -> None:
        topic_id, first_index = parse_partitions_key(key)
        if value is None:
            topic = str(topic_id)
            for index in [i for name, i in self._partitions if name == topic]:
                del self._partitions[topic, index]
            return
        for partition in decode_partitions(key, value, first_index):
            self.findings += self._take_partition(str(topic_id), partition)

    def _take_partition(self, topic_id: str, new: PartitionImage) -> Iterator[Anomaly]:
        name = f"{topic_id}-{new.index}"
        old = self._partitions.get((topic_id, new.index))
        self._partitions[topic_id, new.index] = new
        if old == new:
            return
        self.changes += 1
        if old is not None:
            if new.leader_epoch < old.leader_epoch or new.partition_epoch <= old.partition_epoch:
                yield Anomaly(
                    "epoch-went-back",
                    f"{name}: leader epoch {old.leader_epoch} to {new.leader_epoch}, "
                    f"partition epoch {old.partition_epoch} to {new.partition_epoch}",
                )
            moved = (old.leader, old.leader_epoch) != (new.leader, new.leader_epoch)
            self.elections += moved
        if new.leader != NO_LEADER:
            at = (topic_id, new.index, new.leader_epoch)
            first = self._leaders.setdefault(at, new.leader)
            if first != new.leader:
                yield Anomaly(
                    "two-leaders", f"{name}: {first} and {new.leader} in epoch {new.leader_epoch}"
                )
            if new.leader not in new.isr:
                yield Anomaly("record-insane", f"{name}: led by {new.leader}, ISR {new.isr}")
        if not set(new.isr) <= set(new.replicas) or set(new.isr) & set(new.elr):
            yield Anomaly(
                "record-insane", f"{name}: replicas {new.replicas}, ISR {new.isr}, ELR {new.elr}"
            )
