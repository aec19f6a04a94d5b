"""A node is lost with its disk; what was in the object store is served by a new one."""

import asyncio
import json
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from cli import main as command
from tests.fakes.network.client import Client
from tests.system.conftest import Node, StartNode, until

REMOTE: dict[str, object] = {
    "remote_log_storage_system_enable": True,
    "remote_log_manager_task_interval_ms": 50,
    "rlmm_config_remote_log_metadata_topic_num_partitions": 3,
    "tier_worker": "inline",
}
TIERED: dict[str, object] = {
    "remote_storage_enable": "true",
    "segment_bytes": 1 << 20,
    "local_retention_ms": 1,
    "file_delete_delay_ms": 0,
}
RECORDS = 150


def value(number: int) -> bytes:
    return b"%06d" % number * 20_000


async def varve(capsys: pytest.CaptureFixture[str], *words: str, status: int | None = 0) -> Any:
    """Type a command line; standard output as JSON."""
    ended = await asyncio.to_thread(command.main, [*words, "--json"])
    out, err = capsys.readouterr()
    assert status is None or ended == status, err
    return json.loads(out)


async def read_all(client: Client, start: int, end: int) -> list[bytes | None]:
    values: list[bytes | None] = []
    offset = start
    while offset < end:
        read = await client.fetch("t", offset)
        assert not read.error
        values += [record.value for record in read.records if record.offset >= offset]
        offset = read.records[-1].offset + 1 if read.records else offset
    return values


def is_all_copied(node: Node) -> bool:
    partition = node.broker.replicas.replica_of("t", 0)
    assert partition is not None
    log = partition.log
    return log.highest_remote_offset == log.log_end_offset - 1 and not log.size()


async def filled_node(
    start_node: StartNode, tmp_path: Path, count: int, *, partitions: int = 1
) -> tuple[Path, dict[str, object], Node]:
    """The object store, the settings, and a broker with all records of a topic `t` copied."""
    store = tmp_path / "store"
    settings = REMOTE | {"rsm_config_storage_root": str(store)}
    node = await start_node(**settings)
    client = await node.client()
    await client.create_topic("t", partitions, **TIERED)
    for number in range(count):
        await client.produce("t", value(number))
    await until(lambda: is_all_copied(node))
    return store, settings, node


async def lose(node: Node, tmp_path: Path) -> None:
    """The node with its disk."""
    await node.stop()
    shutil.rmtree(tmp_path / "data")


async def test_consumers_pass_what_a_restore_could_not_bring_back(
    start_node: StartNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """OFFSET_OUT_OF_RANGE would send them to the beginning, again and again, or past it all."""
    store, settings, node = await filled_node(start_node, tmp_path, 60)
    await lose(node, tmp_path)
    logs = sorted(path for path in store.rglob("*.log"))
    assert len(logs) >= 6
    starts = [int(path.name[:20]) for path in logs] + [60]
    lost = [1, 3, 4]
    for number in lost:
        for path in logs[number].parent.glob(logs[number].stem + ".*"):
            path.unlink()

    await varve(
        *(capsys, "tier", "restore", "--root", str(store), "--log-dirs", str(tmp_path / "data")),
        *("--set", "rlmm.config.remote.log.metadata.topic.num.partitions=3", "--allow-gaps"),
        status=None,
    )
    node = await start_node(**settings)
    client = await node.client()
    there = [
        number
        for at, (start, end) in enumerate(pairwise(starts))
        for number in range(start, end)
        if at not in lost
    ]
    assert await read_all(client, 0, 60) == [value(number) for number in there]
    for number in lost:
        behind = next(offset for offset in there if offset >= starts[number])
        for offset in range(starts[number], starts[number + 1]):
            read = await client.fetch("t", offset)
            assert (read.error, read.records[0].offset) == (0, behind)


async def test_a_bucket_that_kafka_filled_with_aivens_plugin_is_enough(
    start_node: StartNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its manifests lack our part: no sums, no settings of topics, no cluster."""
    store, settings, node = await filled_node(start_node, tmp_path, 40)
    assert node.broker.controller is not None
    cluster_id = node.broker.controller.image.cluster_id
    await lose(node, tmp_path)
    for path in store.rglob("*.rsm-manifest"):
        fields = json.loads(path.read_text())
        del fields["remoteLogSegmentMetadata"]["varve"]
        path.write_text(json.dumps(fields))
    (store / "varve-cluster.json").unlink(missing_ok=True)
    words = ("tier", "restore", "--root", str(store), "--log-dirs", str(tmp_path / "data"))
    partitions = "--set=rlmm.config.remote.log.metadata.topic.num.partitions=3"
    with pytest.raises(AssertionError, match=r"set cluster\.id"):
        await varve(capsys, *words, partitions)
    given = f"--set=cluster.id={cluster_id}"
    told = await varve(capsys, *words, partitions, given, status=None)
    assert told["done"]

    node = await start_node(**settings)
    assert node.broker.controller is not None
    overrides = node.broker.controller.image.topics["t"].overrides
    assert (overrides["retention.ms"], overrides["retention.bytes"]) == ("-1", "-1")
    client = await node.client()
    assert await read_all(client, 0, 40) == [value(number) for number in range(40)]
    remote = node.broker.remote
    assert remote is not None
    await until(lambda: remote.manager is not None and bool([*remote.manager.led_partitions()]))
    admin = node.broker.admin_address
    assert admin is not None
    verified = await varve(capsys, "tier", "verify", "t", "--admin", admin)
    assert (verified["segments"] >= 4, verified["faulty"]) == (True, [])


async def test_a_bucket_alone_is_enough(
    start_node: StartNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Same topic id and settings, every record, and the new node goes on copying."""
    store, settings, node = await filled_node(start_node, tmp_path, RECORDS, partitions=2)
    before = node.broker.controller
    assert before is not None
    topic, cluster_id = before.image.topics["t"], before.image.cluster_id
    epoch = topic.partitions[0].leader_epoch
    await lose(node, tmp_path)

    words = (
        *("tier", "restore", "--root", str(store), "--log-dirs", str(tmp_path / "data")),
        *("--set", "rlmm.config.remote.log.metadata.topic.num.partitions=3"),
    )
    told = await varve(capsys, *words, "--dry-run")
    assert told["topics"][0]["partitions"][0]["end"] == RECORDS
    told = await varve(capsys, *words)
    assert (told["done"], told["problems"], told["clusterId"]) == (True, [], cluster_id)

    node = await start_node(**settings)
    after = node.broker.controller
    assert after is not None
    assert after.image.cluster_id == cluster_id
    restored = after.image.topics["t"]
    assert restored.topic_id == topic.topic_id
    assert dict(restored.overrides) == dict(topic.overrides)
    # The second had nothing in the bucket: the broker has made its log anew.
    assert [p.leader_epoch for p in restored.partitions] == [epoch + 1, 1]
    client = await node.client()
    assert await read_all(client, 0, RECORDS) == [value(number) for number in range(RECORDS)]
    for number in range(RECORDS, RECORDS + 60):
        await client.produce("t", value(number))
    await until(lambda: is_all_copied(node))
    assert await read_all(client, RECORDS - 1, RECORDS + 60) == [
        value(number) for number in range(RECORDS - 1, RECORDS + 60)
    ]

    admin = node.broker.admin_address
    assert admin is not None
    (first, *_) = await varve(capsys, "tier", "ls", "--topic", "t", "--admin", admin)
    assert (first["logStart"], first["logEnd"]) == (0, RECORDS + 60)
    verified = await varve(capsys, "tier", "verify", "t", "--admin", admin)
    assert (verified["segments"], verified["faulty"]) == (first["remoteSegments"], [])
    (drawn, *_) = await varve(capsys, "tier", "describe", "t-0", "--admin", admin)
    assert drawn["remote"][0]["start"] == 0
    assert drawn["remote"][-1]["end"] == RECORDS + 60
    assert drawn["leaderEpochs"] == [[epoch, 0], [epoch + 1, RECORDS]]
    garbage = await varve(capsys, "tier", "gc", "--admin", admin)
    assert (garbage["isOurs"], garbage["removedObjects"], garbage["missingSegments"]) == (
        True,
        0,
        0,
    )
    assert "/tier/verify" in (await node.page("/nowhere"))[1]
    status, body = await node.page("/tier?topic=none")
    assert (status, json.loads(body)["error"]) == (
        400,
        "no such partition with remote storage is led here",
    )
    assert (await node.page("/tier?partition=x"))[0] == 400


@pytest.mark.parametrize("damage", ["one bit", "more"])
async def test_a_damaged_manifest_costs_no_object(
    start_node: StartNode, tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    """One bit is put right. Else it is a problem, and what is left out for it stays where it is."""
    store, settings, node = await filled_node(start_node, tmp_path, RECORDS)
    await lose(node, tmp_path)
    manifests = sorted(store.rglob("*.rsm-manifest"))
    damaged = manifests[len(manifests) // 2]
    whole = damaged.read_bytes()
    broken = bytearray(whole)
    broken[200] ^= 4
    if damage == "more":
        broken[300] ^= 1
        broken[400] ^= 1
    damaged.write_bytes(broken)
    before = {path: path.stat().st_size for path in store.rglob("t-*/**/*") if path.is_file()}

    words = (
        *("tier", "restore", "--root", str(store), "--log-dirs", str(tmp_path / "data")),
        *("--set", "rlmm.config.remote.log.metadata.topic.num.partitions=3", "--json"),
    )
    status = await asyncio.to_thread(command.main, words)
    told = json.loads(capsys.readouterr().out)
    assert told["done"]
    if damage == "one bit":
        assert (status, len(told["repaired"]), told["problems"]) == (0, 1, [])
        assert damaged.read_bytes() == whole
    else:
        assert (status, told["repaired"]) == (1, [])
        assert damaged.name in " ".join(told["problems"])

    node = await start_node(**settings, tier_gc_interval_ms=30, tier_gc_grace_ms=0)
    client = await node.client()
    remote = node.broker.remote
    assert remote is not None
    await until(lambda: remote.manager is not None and remote.manager.scrubber.runs >= 5)
    assert {path: path.stat().st_size for path in before} == before
    start = await client.offset("t", -2)
    assert (start == 0) is (damage == "one bit")
    expected = [value(number) for number in range(start, RECORDS)]
    assert await read_all(client, start, RECORDS) == expected
