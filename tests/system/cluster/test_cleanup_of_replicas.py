"""Retention and compaction on every replica: each by itself, up to its own high watermark.

What readers see is equal wherever it is led; the files need not be.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from protocol.error_codes import ErrorCode
from storage.log.log import Log
from tests.harness.brokers import ClusterHarness

SIZE = 100_000
"""Of a record's value: some ten of them fill the smallest segment there is."""


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[ClusterHarness]:
    async with ClusterHarness(
        tmp_path,
        log_retention_check_interval_ms=100,
        log_initial_task_delay_ms=100,
        log_cleaner_backoff_ms=100,
        log_cleaner_dedupe_buffer_size=(1 << 20) + 1,
    ) as cluster:
        yield cluster


def log_of(cluster: ClusterHarness, node_id: int) -> Log:
    partition = cluster.broker(node_id).replicas.replica_of("t", 0)
    assert partition is not None
    return partition.log


def isr(cluster: ClusterHarness) -> set[int]:
    images = [one.controller.image for one in cluster.running if one.controller is not None]
    found = max(images, key=lambda image: image.revision).partition("t", 0)
    assert found is not None
    return set(found.isr)


async def write(cluster: ClusterHarness, *records: tuple[bytes | None, bytes | None]) -> None:
    """A batch a record, so that segments roll; all replicas have them afterwards."""
    client = await cluster.client(await cluster.leading("t"))
    for record in records:
        answer = await client.try_produce("t", [record], acks=-1)
        assert answer.error_code == ErrorCode.NONE
    end = log_of(cluster, await cluster.leading("t")).log_end_offset
    await cluster.until(
        lambda: all(log_of(cluster, node).high_watermark == end for node in cluster.nodes)
    )


async def everything(cluster: ClusterHarness) -> list[tuple[int, bytes | None, bytes | None]]:
    leader = await cluster.leading("t")

    def is_committed() -> bool:
        log = log_of(cluster, leader)
        return log.high_watermark == log.log_end_offset

    # A new leader does not answer before.
    await cluster.until(is_committed)
    client = await cluster.client(leader)
    return [(one.offset, one.key, one.value) for one in await client.read_all("t")]


async def move_leader(cluster: ClusterHarness) -> int:
    """Kill the leader, have another lead, and the killed one back in sync."""
    leader = await cluster.leading("t")
    await cluster.kill(leader, revoke=True)
    await cluster.until(lambda: cluster.leader_of("t") not in (leader, -1))
    await cluster.leading("t")
    await cluster.restart(leader)
    await cluster.until(lambda: isr(cluster) == {1, 2, 3})
    return cluster.leader_of("t")


async def test_followers_delete_what_is_too_much_by_themselves(cluster: ClusterHarness) -> None:
    """By bytes: every replica's log start moves, and a leader change shows nothing older."""
    await cluster.create_topic(
        "t", replicas=3, min_insync_replicas=2, segment_bytes=1 << 20, retention_bytes=1 << 21
    )
    await write(cluster, *((None, b"%03d" % number + b"x" * SIZE) for number in range(60)))
    await cluster.until(
        lambda: all(0 < log_of(cluster, node).log_start_offset < 60 for node in cluster.nodes)
    )
    start = min(log_of(cluster, node).log_start_offset for node in cluster.nodes)
    await move_leader(cluster)
    found = await everything(cluster)
    assert found[0][0] >= start
    assert found[-1][0] == 59
    assert [offset for offset, _, _ in found] == list(range(found[0][0], 60))


async def test_compacted_followers_lead_with_what_the_leader_had(cluster: ClusterHarness) -> None:
    """Keys, their last values and offsets are the same after each change of the leader."""
    await cluster.create_topic(
        "t",
        replicas=3,
        min_insync_replicas=2,
        cleanup_policy="compact",
        segment_bytes=1 << 20,
        min_cleanable_dirty_ratio="0.01",
        delete_retention_ms=100,
    )
    rounds = 5
    for round_number in range(rounds):
        await write(
            cluster,
            *((b"k%d" % key, b"%d-" % round_number + b"x" * SIZE) for key in range(10)),
        )
    await write(cluster, *((b"k%d" % key, None) for key in range(5)))
    await write(cluster, *((b"pad", b"x" * SIZE) for _ in range(15)))
    size = (10 * rounds + 15) * SIZE
    await cluster.until(
        lambda: all(log_of(cluster, node).size() < size // 2 for node in cluster.nodes)
    )
    seen = []
    for _ in range(3):
        found = await everything(cluster)
        last: dict[bytes | None, tuple[int, bytes | None]] = {}
        for offset, key, value in found:
            last[key] = offset, value
        kept = {key: one for key, one in last.items() if one[1] is not None and key != b"pad"}
        assert set(kept) == {b"k%d" % key for key in range(5, 10)}
        assert all(value is not None and value.startswith(b"4-") for _, value in kept.values())
        seen.append((await cluster.leading("t"), kept))
        await move_leader(cluster)
    assert len({leader for leader, _ in seen}) > 1
    assert all(kept == seen[0][1] for _, kept in seen)


async def test_a_producer_goes_on_at_a_leader_whose_log_was_compacted(
    cluster: ClusterHarness,
) -> None:
    """Its last batch may have gone; its sequence has not."""
    await cluster.create_topic(
        "t",
        replicas=3,
        min_insync_replicas=2,
        cleanup_policy="compact",
        segment_bytes=1 << 20,
        min_cleanable_dirty_ratio="0.01",
    )
    client = await cluster.client(await cluster.leading("t"))
    producer = {"producer_id": 7, "producer_epoch": 0}
    answer = await client.try_produce("t", [(b"mine", b"x")], base_sequence=0, **producer)
    assert answer.error_code == ErrorCode.NONE
    await write(cluster, *((b"mine", b"y" * SIZE) for _ in range(40)))
    await cluster.until(
        lambda: all(log_of(cluster, node).size() < 20 * SIZE for node in cluster.nodes)
    )
    await move_leader(cluster)
    client = await cluster.client(await cluster.leading("t"))
    again = await client.try_produce("t", [(b"mine", b"x")], base_sequence=0, **producer)
    assert (again.error_code, again.base_offset) == (ErrorCode.NONE, 0)
    following = await client.try_produce("t", [(b"mine", b"z")], base_sequence=1, **producer)
    assert following.error_code == ErrorCode.NONE
    gap = await client.try_produce("t", [(b"mine", b"z")], base_sequence=9, **producer)
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


async def test_a_follower_behind_the_leaders_start_begins_there(cluster: ClusterHarness) -> None:
    """It was away while retention deleted all that it had: its own log goes, too."""
    await cluster.create_topic(
        "t", replicas=3, min_insync_replicas=1, segment_bytes=1 << 20, retention_bytes=1 << 21
    )
    await write(cluster, *((None, b"%03d" % number + b"x" * SIZE) for number in range(5)))
    leader = await cluster.leading("t")
    away = next(node_id for node_id in cluster.nodes if node_id != leader)
    await cluster.kill(away, revoke=True)
    await cluster.until(lambda: away not in isr(cluster))
    client = await cluster.client(leader)
    for number in range(5, 80):
        await client.produce("t", b"%03d" % number + b"x" * SIZE, acks=1)
    await cluster.until(lambda: log_of(cluster, leader).log_start_offset > 20)
    await cluster.restart(away)
    await cluster.until(lambda: isr(cluster) == {1, 2, 3})
    follower = log_of(cluster, away)
    assert follower.log_start_offset > 20
    assert follower.local_log_start_offset > 5
    others = [node_id for node_id in cluster.nodes if node_id not in (away, leader)]
    # acks=1 waits for no follower: any of them may be the next leader.
    await cluster.until(
        lambda: all(log_of(cluster, node_id).log_end_offset == 80 for node_id in (away, *others))
    )
    # The third deletes up to its own high watermark, which it learns with a fetch of its own.
    await cluster.until(
        lambda: all(log_of(cluster, node_id).log_start_offset > 20 for node_id in others)
    )
    await cluster.kill(leader, revoke=True)
    await cluster.until(lambda: cluster.leader_of("t") in (away, *others))
    found = await everything(cluster)
    assert found[-1][0] == 79
    assert found[0][0] > 20
