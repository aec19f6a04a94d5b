"""Replicas of a partition, compared byte for byte in the files of their brokers."""

import struct
from pathlib import Path

from bench.cluster.cluster import Cluster
from bench.node import NodeError

BATCH_HEAD = struct.Struct(">qii")
"""Base offset, size behind these twelve bytes, leader epoch."""

BATCH_OVERHEAD = 12


def log_bytes(directory: Path) -> bytes:
    """All segments of a replica as one: where a segment ends is each broker's own business."""
    return b"".join(path.read_bytes() for path in sorted(directory.glob("*.log")))


def batches(log: bytes) -> dict[int, tuple[int, bytes]]:
    """Base offset to leader epoch and bytes of each whole batch."""
    found: dict[int, tuple[int, bytes]] = {}
    position = 0
    while position + BATCH_HEAD.size <= len(log):
        base_offset, size, leader_epoch = BATCH_HEAD.unpack_from(log, position)
        end = position + BATCH_OVERHEAD + size
        if size <= 0 or end > len(log):
            break
        found[base_offset] = (leader_epoch, log[position:end])
        position = end
    return found


def difference(cluster: Cluster, topic: str, index: int) -> str | None:
    """The first difference of a partition's replicas, None when they are equal.

    What an earlier log start of one replica still has and others have deleted is no difference.
    """
    logs = {
        node_id: batches(log_bytes(node.data_directory / f"{topic}-{index}"))
        for node_id, node in sorted(cluster.nodes.items())
        if (node.data_directory / f"{topic}-{index}").is_dir()
    }
    begin = max((min(log, default=0) for log in logs.values()), default=0)
    for offset in sorted({at for log in logs.values() for at in log if at >= begin}):
        kept = {node_id: log.get(offset) for node_id, log in logs.items()}
        if len(set(kept.values())) > 1:
            shown = ", ".join(f"{node_id}: {_shown(one)}" for node_id, one in kept.items())
            return f"{topic}-{index} differs at offset {offset}: {shown}"
    return None


def _shown(batch: tuple[int, bytes] | None) -> str:
    return "nothing" if batch is None else f"{len(batch[1])} bytes of epoch {batch[0]}"


def wait_until_equal(
    cluster: Cluster, topic: str, partitions: int, timeout_s: float = 30.0
) -> None:
    """Until all replicas of a topic that nobody writes to are there and equal.

    Raises:
        NodeError: They are not; the text names the first difference.
    """
    assigned = {p.index: p.replicas for p in cluster.state([topic]).partitions}
    reasons: list[str] = []

    def are_equal() -> bool:
        reasons.clear()
        for index in range(partitions):
            for node_id in assigned[index]:
                directory = cluster.nodes[node_id].data_directory / f"{topic}-{index}"
                if not directory.is_dir():
                    reasons.append(f"{topic}-{index}: no replica on {node_id}")
            found = difference(cluster, topic, index)
            if found is not None:
                reasons.append(found)
        return not reasons

    try:
        cluster.wait_until(f"replicas of {topic} are equal", are_equal, timeout_s, poll_s=0.2)
    except NodeError as error:
        raise NodeError(f"{'; '.join(reasons)}\n{error}") from None
