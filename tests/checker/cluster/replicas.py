"""Replicas in the files of their brokers, batch by batch; the findings when they are not equal.

diverged-replica    two replicas have different bytes at an offset, or one lacks what another has
epoch-offset-reuse  two batches have one offset and one leader epoch, and are not the same

Where the cleaner works each broker compacts for itself: there a replica is what it says of every
key, and two that have a record at one offset have the same one.
"""

import hashlib
import itertools
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from bench.cluster.cluster import Cluster
from bench.cluster.replicas import BATCH_HEAD, BATCH_OVERHEAD
from protocol.records.batch import iterate_batches
from protocol.records.control import ControlType, parse_end_transaction_marker
from protocol.records.record import iterate_records
from tests.checker.anomalies.anomaly import Anomaly

COMPACTED: Final = frozenset({"__consumer_offsets", "__transaction_state"})
"""Topics that are compacted in every cluster."""

RECORDS_MAX: Final = 64 << 20
POLL_S: Final = 0.5


class Batch(NamedTuple):
    """A batch: where it stands, and a digest of all behind its leader epoch."""

    base_offset: int
    leader_epoch: int
    digest: bytes


Replica = dict[int, Batch]
"""Batches by base offset."""


def batches_of(directory: Path) -> Iterator[Batch]:
    """Whole batches of a replica, in the order of its segments."""
    for data in _segments(directory):
        position = 0
        while position + BATCH_HEAD.size <= len(data):
            base_offset, size, leader_epoch = BATCH_HEAD.unpack_from(data, position)
            end = position + BATCH_OVERHEAD + size
            if size <= 0 or end > len(data):
                break
            found = hashlib.blake2b(data[position + BATCH_HEAD.size : end], digest_size=12)
            yield Batch(base_offset, leader_epoch, found.digest())
            position = end


def _segments(directory: Path) -> Iterator[bytes]:
    for path in sorted(directory.glob("*.log")):
        try:
            yield path.read_bytes()
        except FileNotFoundError:  # retention was here
            continue


def replica_of(directory: Path) -> Replica:
    """A replica as its files have it."""
    return {batch.base_offset: batch for batch in batches_of(directory)}


def differences(name: str, replicas: Mapping[int, Replica]) -> Iterator[Anomaly]:
    """Compare the replicas of one partition, by node id; the first difference of each kind.

    What one of them has below the log start of another is no difference.
    """
    begin = max((min(one, default=0) for one in replicas.values()), default=0)
    told: set[str] = set()
    for offset in sorted({at for one in replicas.values() for at in one if at >= begin}):
        there = {node_id: one.get(offset) for node_id, one in sorted(replicas.items())}
        kinds = {batch for batch in there.values() if batch is not None}
        if len(kinds) == 1 and None not in there.values():
            continue
        epochs = [batch.leader_epoch for batch in kinds]
        kind = "epoch-offset-reuse" if len(set(epochs)) < len(epochs) else "diverged-replica"
        if kind not in told:
            told.add(kind)
            shown = ", ".join(f"{node_id}: {_shown(one)}" for node_id, one in there.items())
            yield Anomaly(kind, f"{name}@{offset}: {shown}")


def _shown(batch: Batch | None) -> str:
    return "nothing" if batch is None else f"epoch {batch.leader_epoch}, {batch.digest.hex()[:8]}"


class Compacted(NamedTuple):
    """What a compacted replica says.

    Attributes:
        values: Of each key the last committed value, without tombstones, and its offset.
        records: A digest of every record, by offset.
        end: Behind its last batch.
    """

    values: dict[bytes, tuple[int, bytes]]
    records: dict[int, bytes]
    end: int


def compacted_of(directory: Path) -> Compacted:
    """Read a replica record by record; what was aborted says nothing."""
    values: dict[bytes, tuple[int, bytes | None]] = {}
    records: dict[int, bytes] = {}
    pending: dict[int, list[tuple[bytes, int, bytes | None]]] = {}
    end = 0
    for data in _segments(directory):
        view = memoryview(data)
        for position, header in iterate_batches(view, allow_partial=True):
            end = header.next_offset
            batch = view[position : position + header.size]
            if header.is_control:
                marker = parse_end_transaction_marker(batch)
                said = pending.pop(header.producer_id, [])
                if marker is not None and marker.control_type != ControlType.ABORT:
                    values |= {key: (offset, value) for key, offset, value in said}
                continue
            for record in iterate_records(batch, max_size=RECORDS_MAX):
                key = bytes(record.key or b"")
                value = None if record.value is None else bytes(record.value)
                named = b"%d:%d:%b%b" % (header.leader_epoch, len(key), key, value or b"\0")
                records[record.offset] = hashlib.blake2b(named, digest_size=12).digest()
                if header.is_transactional:
                    pending.setdefault(header.producer_id, []).append((key, record.offset, value))
                else:
                    values[key] = (record.offset, value)
    kept = {key: (at, value) for key, (at, value) in values.items() if value is not None}
    return Compacted(kept, records, end)


def compacted_differences(name: str, replicas: Mapping[int, Compacted]) -> Iterator[Anomaly]:
    """Compare compacted replicas, by node id; the first difference of each pair."""
    nodes = sorted(replicas)
    for first, second in itertools.pairwise(nodes):
        one, other = replicas[first], replicas[second]
        where = f"{name} on {first} and {second}"
        if one.end != other.end:
            yield Anomaly("diverged-replica", f"{where}: end at {one.end} and {other.end}")
            continue
        for offset in sorted(one.records.keys() & other.records.keys()):
            if one.records[offset] != other.records[offset]:
                yield Anomaly("diverged-replica", f"{where}: other records at {offset}")
                break
        for key in sorted(one.values.keys() | other.values.keys()):
            if one.values.get(key) != other.values.get(key):
                yield Anomaly("diverged-replica", f"{where}: key {key[:40]!r} has other values")
                break


def compare_partition(
    directories: Mapping[int, Path], name: str, *, is_compacted: bool
) -> list[Anomaly]:
    """The findings of one partition; `directories`: its replicas by node id."""
    missing = [node_id for node_id, directory in directories.items() if not directory.is_dir()]
    if missing:
        return [Anomaly("diverged-replica", f"{name}: no replica on {missing}")]
    if is_compacted:
        read = {node_id: compacted_of(directory) for node_id, directory in directories.items()}
        return list(compacted_differences(name, read))
    found = {node_id: replica_of(directory) for node_id, directory in directories.items()}
    return list(differences(name, found))


def compare_replicas(
    cluster: Cluster, topics: Sequence[str] | None = None, timeout_s: float = 30.0
) -> list[Anomaly]:
    """Compare all replicas of some topics, by default of all, once nobody writes to them.

    A follower may be a moment behind: what still differs after `timeout_s` is a finding.
    """
    deadline = time.monotonic() + timeout_s
    partitions = cluster.state(topics).partitions
    left = [(p.topic, p.index, p.replicas) for p in partitions]
    while True:
        found: list[Anomaly] = []
        unequal = []
        for topic, index, replicas in left:
            name = f"{topic}-{index}"
            directories = {n: cluster.nodes[n].data_directory / name for n in replicas}
            wrong = compare_partition(directories, name, is_compacted=topic in COMPACTED)
            if wrong:
                unequal.append((topic, index, replicas))
                found += wrong
        left = unequal
        if not left or time.monotonic() > deadline:
            return found
        time.sleep(POLL_S)
