"""Every finding about replicas and store is found in a copy that was damaged for it."""

import shutil
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest

from broker.controller.images.metadata_records import (
    CONTROLLER_KEY,
    encode_partitions,
    partitions_key,
)
from broker.controller.images.partition_image import NO_LEADER, PartitionImage
from broker.controller.store.metadata_store import Changes, Event, EventKind, KeyValue
from protocol.records.batch import set_offset_and_epoch
from protocol.records.builder import build_batch
from tests.checker.anomalies.anomaly import FORBIDDEN, Anomaly
from tests.checker.cluster.ledger import Ledger
from tests.checker.cluster.replicas import compare_partition
from tests.checker.cluster.store_history import StoreHistory

METADATA = "version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n"
SEGMENT = "00000000000000000000.log"
Damage = Callable[[bytearray], bytes]


def batch(offset: int, epoch: int, text: str, key: bytes | None = None) -> bytes:
    """One record's batch as a leader of that epoch has appended it."""
    data = bytearray(build_batch([(key, text.encode(), (), 1000)]))
    set_offset_and_epoch(data, 0, offset, epoch)
    return bytes(data)


def tombstone(offset: int, epoch: int, key: bytes) -> bytes:
    """A record that deletes a key."""
    data = bytearray(build_batch([(key, None, (), 1000)]))
    set_offset_and_epoch(data, 0, offset, epoch)
    return bytes(data)


LOG = [batch(0, 3, "one"), batch(1, 3, "two"), batch(2, 5, "three"), batch(3, 5, "four")]


def place(directory: Path, node_id: int, batches: Sequence[bytes], name: str = "t-0") -> Path:
    """Write a replica's files, in two segments if it is long enough."""
    replica = directory / f"{node_id}" / name
    shutil.rmtree(replica, ignore_errors=True)
    replica.mkdir(parents=True)
    (replica / "partition.metadata").write_text(METADATA)
    (replica / SEGMENT).write_bytes(b"".join(batches[:2]))
    if len(batches) > 2:
        (base_offset,) = struct.unpack_from(">q", batches[2])
        (replica / f"{base_offset:020d}.log").write_bytes(b"".join(batches[2:]))
    return replica


def findings(directory: Path, copies: Sequence[Sequence[bytes]], **more: bool) -> list[Anomaly]:
    """Those of three replicas."""
    replicas = {n: place(directory, n, copy) for n, copy in enumerate(copies, 1)}
    return compare_partition(replicas, "t-0", is_compacted=more.get("is_compacted", False))


def kinds(found: Sequence[Anomaly]) -> list[str]:
    """Their names; the report fails a run for each of them."""
    assert {one.kind for one in found} <= FORBIDDEN
    return [one.kind for one in found]


def test_equal_replicas_have_no_findings(tmp_path: Path) -> None:
    """Nor has one whose log start is later, and one whose segments are others."""
    assert findings(tmp_path, [LOG, LOG[1:], LOG]) == []


def test_a_flipped_byte_is_found(tmp_path: Path) -> None:
    """Of one epoch: two batches have one name."""
    damaged = bytearray(LOG[2])
    damaged[-2] ^= 1
    found = findings(tmp_path, [LOG, LOG, [*LOG[:2], bytes(damaged), LOG[3]]])
    assert kinds(found) == ["epoch-offset-reuse"]
    assert "t-0@2: 1: epoch 5" in found[0].text


def test_a_batch_of_another_epoch_is_found(tmp_path: Path) -> None:
    other = [*LOG[:2], batch(2, 4, "other"), LOG[3]]
    assert kinds(findings(tmp_path, [LOG, other, LOG])) == ["diverged-replica"]


@pytest.mark.parametrize("missing", [1, 3])
def test_a_batch_that_is_missing_is_found(tmp_path: Path, missing: int) -> None:
    """In the middle, and at the end."""
    copy = [one for number, one in enumerate(LOG) if number != missing]
    assert kinds(findings(tmp_path, [LOG, copy, LOG])) == ["diverged-replica"]


def test_a_torn_end_is_found(tmp_path: Path) -> None:
    assert kinds(findings(tmp_path, [LOG, LOG, [*LOG[:3], LOG[3][:-1]]])) == ["diverged-replica"]


def test_a_replica_that_is_not_there_is_found(tmp_path: Path) -> None:
    replicas = {1: place(tmp_path, 1, LOG), 2: tmp_path / "2" / "t-0"}
    found = compare_partition(replicas, "t-0", is_compacted=False)
    assert [one.text for one in found] == ["t-0: no replica on [2]"]


# Compacted by each broker for itself.

COMPACTED = [
    batch(0, 1, "old", b"a"),
    batch(1, 1, "kept", b"b"),
    batch(2, 2, "new", b"a"),
    tombstone(3, 2, b"c"),
]


def test_what_one_broker_has_compacted_is_no_difference(tmp_path: Path) -> None:
    """Nor is a tombstone that one has dropped already."""
    ahead = [COMPACTED[1], COMPACTED[2], batch(3, 2, "end", b"d")]
    behind = [*COMPACTED[:3], batch(3, 2, "end", b"d")]
    assert findings(tmp_path, [behind, ahead, behind], is_compacted=True) == []
    dropped = [*COMPACTED[:3], batch(4, 2, "end", b"d")]
    there = [*COMPACTED, batch(4, 2, "end", b"d")]
    assert findings(tmp_path, [dropped, there, there], is_compacted=True) == []


def test_another_value_of_a_key_is_found(tmp_path: Path) -> None:
    wrong = [COMPACTED[0], COMPACTED[1], batch(3, 2, "new", b"b")]
    right = [COMPACTED[0], COMPACTED[1], batch(3, 2, "new", b"a")]
    assert set(kinds(findings(tmp_path, [right, wrong, right], is_compacted=True))) == {
        "diverged-replica"
    }


def test_a_lost_key_is_found(tmp_path: Path) -> None:
    lost = [COMPACTED[0], COMPACTED[2], COMPACTED[3]]
    found = findings(tmp_path, [COMPACTED, lost, COMPACTED], is_compacted=True)
    assert "key b'b' has other values" in found[0].text


def test_a_compacted_replica_that_ends_early_is_found(tmp_path: Path) -> None:
    found = findings(tmp_path, [COMPACTED, COMPACTED[:3], COMPACTED], is_compacted=True)
    assert "end at 4 and 3" in found[0].text


# Over time.


def test_a_batch_that_replaces_another_of_its_epoch_is_found(tmp_path: Path) -> None:
    """One of a later epoch may; so may the same one come back."""
    ledger = Ledger()
    place(tmp_path, 1, [LOG[0], batch(1, 3, "cut")])
    ledger.read("1", tmp_path / "1")
    place(tmp_path, 1, [LOG[0], batch(1, 4, "later")])
    ledger.read("1", tmp_path / "1")
    place(tmp_path, 2, [LOG[0], batch(1, 3, "cut")])
    ledger.read("2", tmp_path / "2")
    assert ledger.findings == []
    place(tmp_path, 2, [LOG[0], batch(1, 3, "other")])
    ledger.read("2", tmp_path / "2")
    assert kinds(ledger.findings) == ["epoch-offset-reuse"]
    assert ledger.size == 3


def test_a_topic_that_was_made_again_is_another_one(tmp_path: Path) -> None:
    ledger = Ledger()
    replica = place(tmp_path, 1, [batch(0, 0, "of the first")])
    ledger.read("1", tmp_path / "1")
    place(tmp_path, 1, [batch(0, 0, "of the second")])
    (replica / "partition.metadata").write_text(METADATA.replace("Q", "g"))
    ledger.read("1", tmp_path / "1")
    assert ledger.findings == []
    ledger.forget("t-0")
    assert ledger.size == 0


# The store.

TOPIC = UUID(int=7)
FIRST = PartitionImage(0, 1, 0, 0, (1, 2, 3), (1, 2, 3))


class Script:
    """A store's changes, written by hand."""

    def __init__(self) -> None:
        self.history = StoreHistory()
        self._revision = 0

    def put(self, key: str, value: bytes) -> None:
        """A key with a value."""
        self._take(Event(EventKind.PUT, key, self._revision + 1, self._kept(key, value), None))

    def delete(self, key: str) -> None:
        """A key is gone."""
        self._take(Event(EventKind.DELETE, key, self._revision + 1, None, None))

    def partition(self, image: PartitionImage) -> None:
        """A partition's record."""
        self.put(partitions_key(TOPIC, 0), encode_partitions([image]))

    def _kept(self, key: str, value: bytes) -> KeyValue:
        return KeyValue(key, value, 1, self._revision + 1, 1)

    def _take(self, event: Event) -> None:
        self._revision += 1
        self.history.take(Changes(self._revision, (event,)))

    @property
    def kinds(self) -> list[str]:
        """Of its findings."""
        return kinds(self.history.findings)


@pytest.fixture
def script() -> Script:
    """A controller, and a partition."""
    script = Script()
    script.put(CONTROLLER_KEY, b"{}")
    script.partition(FIRST)
    return script


def test_an_orderly_history_has_no_findings(script: Script) -> None:
    script.partition(replace(FIRST, isr=(1, 2), partition_epoch=1))
    script.partition(replace(FIRST, leader=2, leader_epoch=1, isr=(2,), partition_epoch=2))
    none = replace(FIRST, leader=NO_LEADER, leader_epoch=2, isr=(), elr=(2,), partition_epoch=3)
    script.partition(none)
    script.delete(CONTROLLER_KEY)
    script.put(CONTROLLER_KEY, b"{}")
    script.partition(replace(FIRST, leader=2, leader_epoch=3, isr=(2,), partition_epoch=4))
    assert script.kinds == []
    history = script.history
    assert (history.changes, history.elections, history.controllers) == (5, 3, 2)


def test_two_leaders_of_one_epoch_are_found(script: Script) -> None:
    script.partition(replace(FIRST, leader=2, partition_epoch=1))
    assert script.kinds == ["two-leaders"]


def test_a_leader_epoch_that_goes_back_is_found(script: Script) -> None:
    script.partition(replace(FIRST, leader=2, leader_epoch=5, partition_epoch=1))
    script.partition(replace(FIRST, leader=3, leader_epoch=4, partition_epoch=2))
    assert script.kinds == ["epoch-went-back"]


def test_a_change_in_the_same_partition_epoch_is_found(script: Script) -> None:
    script.partition(replace(FIRST, isr=(1, 2)))
    assert script.kinds == ["epoch-went-back"]


def test_a_leader_outside_the_isr_is_found(script: Script) -> None:
    script.partition(replace(FIRST, isr=(2, 3), partition_epoch=1))
    assert script.kinds == ["record-insane"]


def test_an_isr_outside_the_replicas_or_in_the_elr_is_found(script: Script) -> None:
    script.partition(replace(FIRST, isr=(1, 4), partition_epoch=1))
    script.partition(replace(FIRST, isr=(1, 2), elr=(2,), partition_epoch=2))
    assert script.kinds == ["record-insane", "record-insane"]


def test_a_change_without_a_controller_is_found(script: Script) -> None:
    script.delete(CONTROLLER_KEY)
    script.partition(replace(FIRST, isr=(1, 2), partition_epoch=1))
    assert script.kinds == ["write-by-nobody"]
