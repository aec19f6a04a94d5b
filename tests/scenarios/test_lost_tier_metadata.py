"""What remote storage holds outlives the loss of `__remote_log_metadata`, or of a part of it.

Every object is counted before and after, with a collector that is on its way all the time and
gives no grace.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from protocol.error_codes import ErrorCode
from tests.fakes.client import Client
from tests.scenarios.conftest import Node, StartNode, until

REMOTE: dict[str, object] = {
    "remote_log_storage_system_enable": True,
    "remote_log_manager_task_interval_ms": 50,
    "rlmm_config_remote_log_metadata_topic_num_partitions": 3,
    "tier_worker": "inline",
    "tier_gc_interval_ms": 30,
    "tier_gc_grace_ms": 0,
}
TIERED: dict[str, object] = {
    "remote_storage_enable": "true",
    "segment_bytes": 1 << 20,
    "local_retention_ms": 1,
    "file_delete_delay_ms": 0,
}
METADATA = "__remote_log_metadata"
RECORDS = 80
PASSES = 5
"""Of the collector, before it counts as harmless."""


def value(number: int) -> bytes:
    return b"%06d" % number * 20_000


def history(data: Path) -> dict[str, int]:
    """Objects of segments by name, and their sizes."""
    root = data / "varve-objects"
    return {
        str(path.relative_to(root)): path.stat().st_size
        for path in sorted(root.rglob("*"))
        if path.suffix in (".log", ".indexes", ".rsm-manifest")
    }


def is_copied(node: Node, topic: str = "t") -> bool:
    """All of it, and nothing but the active segment is here still."""
    partition = node.broker.replicas.get_partition(topic, 0)
    assert partition is not None
    log = partition.log
    return log.highest_remote_offset == log.log_end_offset - 1 and not log.size()


async def copied(start_node: StartNode, **settings: object) -> Node:
    """A broker whose topic "t" is all in remote storage, and nowhere else."""
    node = await start_node(**REMOTE, **settings)
    client = await node.client()
    await client.create_topic("t", 1, **TIERED)
    for number in range(RECORDS):
        await client.produce("t", value(number))
    await until(lambda: is_copied(node))
    return node


async def collected(node: Node, passes: int = PASSES) -> None:
    """The collector has gone over the bucket some more times."""
    remote = node.broker.remote
    assert remote is not None
    await until(lambda: remote.manager is not None)
    manager = remote.manager
    assert manager is not None
    before = manager.scrubber.runs
    await until(lambda: manager.scrubber.runs >= before + passes)


def lose_topic(data: Path) -> None:
    """All that told what is in remote storage, and the snapshots of it."""
    for path in data.glob(f"{METADATA}-*"):
        shutil.rmtree(path)
    shutil.rmtree(data / "varve-remote-metadata", ignore_errors=True)


def lose_topic_but_not_its_snapshots(data: Path) -> None:
    for path in data.glob(f"{METADATA}-*"):
        shutil.rmtree(path)


def lose_topic_and_checkpoints(data: Path) -> None:
    lose_topic(data)
    (data / "log-start-offset-checkpoint").unlink()


def lose_topic_and_epochs(data: Path) -> None:
    lose_topic(data)
    (data / "t-0" / "leader-epoch-checkpoint").unlink()


async def read_some(client: Client, offset: int) -> tuple[int, list[bytes | None]]:
    """What one fetch says: its error, and the values."""
    read = await client.fetch("t", offset)
    return read.error, [record.value for record in read.records if record.offset >= offset]


@pytest.mark.parametrize(
    "lose",
    [lose_topic, lose_topic_and_checkpoints, lose_topic_and_epochs],
    ids=lambda f: f.__name__,
)
async def test_a_lost_metadata_topic_costs_no_object(
    start_node: StartNode, tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    """The log waits; consumers are not sent away; two starts change nothing."""
    data = tmp_path / "data"
    node = await copied(start_node)
    before = history(data)
    assert len(before) > 20
    await node.stop()
    lose(data)
    for _ in range(2):
        node = await start_node(**REMOTE, remote_fetch_max_wait_ms=50)
        await collected(node)
        assert history(data) == before
        client = await node.client()
        assert await client.offset("t", -2) == 0, "the log start did not go up"
        assert await read_some(client, 0) == (ErrorCode.NONE, [])
        assert await client.produce("t", value(1000)) >= RECORDS
        status, text = await node.page("/readyz")
        assert status == 200
        assert "varve tier rebuild-metadata" in text
        await node.stop()
        checkpoint = (data / "log-start-offset-checkpoint").read_text()
        assert "t 0" not in checkpoint
    assert history(data) == before


def lose_snapshots_and_first_events(data: Path) -> None:
    """As DeleteRecords, or a short retention, would leave the topic."""
    shutil.rmtree(data / "varve-remote-metadata", ignore_errors=True)
    lines = []
    for path in sorted(data.glob(f"{METADATA}-*")):
        (log,) = path.glob("*.log")
        if log.stat().st_size:
            lines.append(f"{METADATA} {path.name.rpartition('-')[2]} {6}")
    checkpoint = data / "log-start-offset-checkpoint"
    checkpoint.write_text("\n".join(["0", str(len(lines)), *lines, ""]))


async def test_what_is_left_of_the_metadata_does_not_move_the_log_start(
    start_node: StartNode, tmp_path: Path
) -> None:
    """Half of it is gone: neither is the other half garbage, nor the new beginning."""
    data = tmp_path / "data"
    node = await copied(start_node)
    before = history(data)
    await node.stop()
    lose_snapshots_and_first_events(data)
    for _ in range(2):
        node = await start_node(**REMOTE, remote_fetch_max_wait_ms=50)
        await collected(node)
        client = await node.client()
        assert await client.offset("t", -2) == 0
        assert await read_some(client, 0) == (ErrorCode.NONE, [])
        assert "rebuild-metadata" in (await node.page("/readyz"))[1]
        metrics = await node.metrics()
        assert metrics.of("varve_remote_unknown_copies") > 0
        assert metrics.of("varve_remote_held_back_partitions") == 1
        await node.stop()
        assert history(data) == before


async def test_a_lost_epoch_checkpoint_costs_no_history(
    start_node: StartNode, tmp_path: Path
) -> None:
    """Lost or damaged: the remote segments know the epochs."""
    data = tmp_path / "data"
    node = await copied(start_node)
    before = history(data)
    for content in (None, b"0\n1\n", b"\x00" * 20):
        await node.stop()
        checkpoint = data / "t-0" / "leader-epoch-checkpoint"
        if content is None:
            checkpoint.unlink()
        else:
            checkpoint.write_bytes(content)
        node = await start_node(**REMOTE)
        await collected(node)
        client = await node.client()
        values = [record.value for record in await client.read_all("t")]
        assert values == [value(number) for number in range(RECORDS)]
        assert history(data) == before
        assert (await node.page("/readyz"))[1].strip() == "ready"
