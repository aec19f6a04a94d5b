"""A disk that is not mounted, moved, copied or lost: nothing it holds is made anew or hidden."""

import asyncio
import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from broker.runtime.startup_errors import StartupError
from cli.main import main
from protocol.error_codes import ErrorCode
from protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from storage.checkpoints.meta_properties import META_PROPERTIES, read_meta_properties
from storage.environment.local_filesystem import LocalFilesystem
from storage.types.uuid_text import format_uuid
from tests.fakes.network.client import Client
from tests.system.conftest import Node, StartNode
from tests.system.disks.test_directories import STORAGE, placed
from tests.system.disks.test_metadata_store_place import STORE, move, without_store_key

PARTITIONS = 6


@pytest.fixture
def dirs(tmp_path: Path) -> tuple[str, str, str]:
    """The first holds the metadata store."""
    a, b, c = (str(tmp_path / name) for name in ("a", "b", "c"))
    return a, b, c


def names_in(path: str) -> set[str]:
    return {name for name in os.listdir(path) if name != ".lock"}


def id_of(path: str) -> str:
    meta = read_meta_properties(LocalFilesystem(), f"{path}/{META_PROPERTIES}")
    assert meta is not None
    assert meta.directory_id is not None
    return format_uuid(meta.directory_id)


def replaced_by_nothing(path: str) -> None:
    """Its disk is not mounted: the mount point's own folder shows."""
    move(path, path + ".away")
    os.mkdir(path)


def mounted_again(path: str) -> None:
    if os.path.exists(path):
        shutil.rmtree(path)
    move(path + ".away", path)


async def drop(dirs: tuple[str, ...], directory_id: str) -> int:
    words = ["dirs", "drop", directory_id, f"--set=log.dirs={','.join(dirs)}"]
    return await asyncio.to_thread(main, words)


async def filled(start_node: StartNode, dirs: tuple[str, ...]) -> dict[int, str]:
    """A topic over all directories, one record in each partition; the node is stopped again."""
    node = await start_node(log_dirs=dirs)
    client = await node.client()
    await client.create_topic("t", PARTITIONS)
    for index in range(PARTITIONS):
        await client.produce("t", b"kept", partition=index)
    places = {index: path for (_, index), path in (await placed(client)).items()}
    assert set(places.values()) == set(dirs)
    await node.stop()
    return places


async def check(client: Client, indexes: list[int], *values: bytes) -> None:
    for index in indexes:
        found = [record.value for record in await client.read_all("t", partition=index)]
        assert found == list(values), index


async def check_offline(client: Client, indexes: list[int]) -> None:
    for index in indexes:
        assert (
            await client.try_produce("t", [(None, b"x")], partition=index)
        ).error_code in STORAGE
        assert (await client.fetch("t", 0, partition=index)).error in STORAGE


async def codes(client: Client) -> dict[str, int]:
    answer = await client.call(DescribeLogDirsRequest(topics=None))
    return {result.log_dir: result.error_code for result in answer.results}


def of(places: dict[int, str], path: str) -> list[int]:
    return sorted(index for index, where in places.items() if where == path)


@pytest.mark.parametrize("how", ["empty folder", "no folder", "not in log.dirs", "other order"])
async def test_what_a_missing_disk_holds_is_not_made_anew(
    start_node: StartNode, dirs: tuple[str, str, str], how: str
) -> None:
    """The rest is served; it is said; and with the disk everything is back."""
    a, b, c = dirs
    places = await filled(start_node, dirs)
    missing_id = id_of(b)
    replaced_by_nothing(b)
    now = {"not in log.dirs": (a, c), "other order": (c, b, a)}.get(how, dirs)
    if how in ("no folder", "not in log.dirs"):
        os.rmdir(b)
    node = await start_node(log_dirs=now)
    client = await node.client()
    gone, here = of(places, b), of(places, a) + of(places, c)
    await check(client, here, b"kept")
    await check_offline(client, gone)
    if b in now:
        assert names_in(b) == set()
    assert await codes(client) == {
        a: ErrorCode.NONE,
        b: ErrorCode.KAFKA_STORAGE_ERROR,
        c: ErrorCode.NONE,
    }
    status, text = await node.page("/readyz")
    assert status == 200
    assert f"varve dirs drop {missing_id}" in text
    assert b in text
    metrics = await node.metrics()
    assert metrics.of("kafka_log_logmanager_offlinelogdirectorycount") == 1
    assert metrics.of("kafka_server_replicamanager_offlinereplicacount") == len(gone)
    assert metrics.of("varve_alerts", kind="directory-missing") == 1
    # New partitions are where there is a disk, also of the topic that is offline in part.
    await client.create_topic("new", 4)
    grown = CreatePartitionsTopic(name="t", count=PARTITIONS + 2, assignments=None)
    answer = await client.call(CreatePartitionsRequest(topics=[grown], timeout_ms=10_000))
    assert answer.results[0].error_code == 0
    for index in (PARTITIONS, PARTITIONS + 1):
        await client.produce("t", b"kept", partition=index)
    assert set((await placed(client)).values()) == {a, c}
    for index in here:
        await client.produce("t", b"more", partition=index)
    await node.stop()
    # A second start without it is no other.
    node = await start_node(log_dirs=now)
    await check_offline(await node.client(), gone)
    await node.stop()
    mounted_again(b)
    node = await start_node(log_dirs=dirs)
    client = await node.client()
    await check(client, gone, b"kept")
    await check(client, here, b"kept", b"more")
    assert (await node.page("/readyz"))[1] == "ready\n"
    assert node.broker.log_manager.stray == []
    for index in gone:
        assert await client.produce("t", b"more", partition=index) == 1


async def test_an_empty_disk_is_not_taken_while_another_is_missing(
    start_node: StartNode, tmp_path: Path, dirs: tuple[str, str, str]
) -> None:
    """It may be the other's mount point; after the operator has decided it is."""
    await filled(start_node, dirs)
    missing = id_of(dirs[2])
    replaced_by_nothing(dirs[2])
    new = str(tmp_path / "new")
    node = await start_node(log_dirs=(*dirs, new))
    assert names_in(new) == set()
    assert (await codes(await node.client()))[new] == ErrorCode.KAFKA_STORAGE_ERROR
    assert new in (await node.page("/readyz"))[1]
    await node.stop()
    assert await drop((*dirs, new), missing) == 0
    node = await start_node(log_dirs=(*dirs, new))
    assert META_PROPERTIES in names_in(new)
    assert META_PROPERTIES in names_in(dirs[2])


async def test_the_operator_drops_a_directory(
    start_node: StartNode, dirs: tuple[str, str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Then its partitions begin anew, empty, in another leader epoch, also if it turns up again."""
    a, b, _ = dirs
    places = await filled(start_node, dirs)
    missing, gone = id_of(b), of(places, b)
    assert await drop(dirs, missing) == 1
    assert "is here" in capsys.readouterr().err
    replaced_by_nothing(b)
    node = await start_node(log_dirs=dirs)
    assert await drop(dirs, missing) == 1
    assert "another process" in capsys.readouterr().err
    await node.stop()
    assert await drop(dirs, "AAAAAAAAAAAAAAAAAAAAAQ") == 1
    assert await drop(dirs, missing) == 0
    assert f"{len(gone)} partitions" in capsys.readouterr().out
    node = await start_node(log_dirs=dirs)
    client = await node.client()
    for index in gone:
        assert await client.produce("t", b"anew", partition=index) == 0
        partition = node.broker.replicas.replica_of("t", index)
        assert partition is not None
        assert partition.leader_epoch == 1
    assert (await node.page("/readyz"))[1] == "ready\n"
    await node.stop()
    # The disk turns up after all: what it has is set aside, not mixed with what was written since.
    shutil.move(b + ".away", b + ".found")
    node = await start_node(log_dirs=(*dirs, b + ".found"))
    client = await node.client()
    await check(client, gone, b"anew")
    await check(client, of(places, a), b"kept")
    assert len(node.broker.log_manager.stray) == len(gone)
    assert await client.produce("t", b"more", partition=gone[0]) == 1


async def test_a_copied_disk_is_refused(start_node: StartNode, dirs: tuple[str, str, str]) -> None:
    """Which of the two is the newer nobody can tell."""
    await filled(start_node, dirs[:2])
    shutil.copytree(dirs[1], dirs[2])
    with pytest.raises(StartupError) as refused:
        await start_node(log_dirs=dirs)
    assert dirs[1] in str(refused.value)
    assert dirs[2] in str(refused.value)
    await start_node(log_dirs=(dirs[0], dirs[2]))


async def test_disks_may_change_places(start_node: StartNode, dirs: tuple[str, str, str]) -> None:
    """A directory is known by its id, not by its path."""
    places = await filled(start_node, dirs)
    move(dirs[1], dirs[1] + ".x")
    move(dirs[2], dirs[1])
    move(dirs[1] + ".x", dirs[2])
    node = await start_node(log_dirs=dirs)
    client = await node.client()
    await check(client, list(range(PARTITIONS)), b"kept")
    moved = {index: path for (_, index), path in (await placed(client)).items()}
    assert of(moved, dirs[2]) == of(places, dirs[1])
    await node.stop()
    replaced_by_nothing(dirs[2])
    node = await start_node(log_dirs=dirs)
    assert dirs[2] in (await node.page("/readyz"))[1]
    await check_offline(await node.client(), of(places, dirs[1]))


async def test_an_empty_directory_may_be_taken_away(
    start_node: StartNode, dirs: tuple[str, str, str]
) -> None:
    """Nothing is missed, so nothing is asked."""
    node = await start_node(log_dirs=dirs)
    await node.stop()
    shutil.rmtree(dirs[1])
    os.mkdir(dirs[1])
    node = await start_node(log_dirs=dirs[:2])
    assert (await node.page("/readyz"))[1] == "ready\n"
    assert META_PROPERTIES in names_in(dirs[1])


async def test_a_folder_moved_by_hand_is_served_where_it_is(
    start_node: StartNode, dirs: tuple[str, str, str]
) -> None:
    """And missed there from then on."""
    places = await filled(start_node, dirs)
    index = of(places, dirs[1])[0]
    move(f"{dirs[1]}/t-{index}", f"{dirs[2]}/t-{index}")
    node = await start_node(log_dirs=dirs)
    await check(await node.client(), list(range(PARTITIONS)), b"kept")
    await node.stop()
    replaced_by_nothing(dirs[2])
    node = await start_node(log_dirs=dirs)
    await check_offline(await node.client(), [*of(places, dirs[2]), index])
    await check(await node.client(), of(places, dirs[1])[1:], b"kept")


async def test_a_second_copy_of_a_partition_is_set_aside(
    start_node: StartNode, dirs: tuple[str, str, str]
) -> None:
    """The one in the directory that the partition belongs to is served."""
    places = await filled(start_node, dirs)
    index = of(places, dirs[1])[0]
    for other in (dirs[0], dirs[2]):
        shutil.copytree(f"{dirs[1]}/t-{index}", f"{other}/t-{index}")
    node = await start_node(log_dirs=dirs)
    client = await node.client()
    assert (await placed(client))["t", index] == dirs[1]
    assert await client.produce("t", b"more", partition=index) == 1
    assert len(node.broker.log_manager.stray) == 2
    await node.stop()
    # While its directory is missing, a copy elsewhere is not taken for it.
    replaced_by_nothing(dirs[1])
    shutil.copytree(f"{dirs[1]}.away/t-{index}", f"{dirs[0]}/t-{index}")
    node = await start_node(log_dirs=dirs)
    await check_offline(await node.client(), of(places, dirs[1]))
    assert f"t-{index}" in names_in(dirs[0])
    await node.stop()
    mounted_again(dirs[1])
    node = await start_node(log_dirs=dirs)
    await check(await node.client(), [index], b"kept", b"more")


@pytest.mark.parametrize("again", [False, True])
async def test_a_topic_deleted_meanwhile_does_not_come_back(
    start_node: StartNode, dirs: tuple[str, str, str], again: bool
) -> None:
    """Nor do its records appear in a topic of the same name."""
    places = await filled(start_node, dirs)
    replaced_by_nothing(dirs[1])
    node = await start_node(log_dirs=dirs)
    client = await node.client()
    await client.delete_topic("t")
    if again:
        await client.create_topic("t", PARTITIONS)
        for index in range(PARTITIONS):
            assert await client.produce("t", b"anew", partition=index) == 0
    await node.stop()
    mounted_again(dirs[1])
    node = await start_node(log_dirs=dirs)
    client = await node.client()
    assert len(node.broker.log_manager.stray) == len(of(places, dirs[1]))
    if again:
        await check(client, list(range(PARTITIONS)), b"anew")
    else:
        assert "t" not in {topic.name for topic in (await client.metadata()).topics}


async def test_the_owners_file_is_lost(start_node: StartNode, dirs: tuple[str, str, str]) -> None:
    """The partitions in it say which directory it is; what is there need not be missed."""
    places = await filled(start_node, dirs)
    directory_id = id_of(dirs[1])
    os.unlink(f"{dirs[1]}/{META_PROPERTIES}")
    node = await start_node(log_dirs=dirs)
    await check(await node.client(), list(range(PARTITIONS)), b"kept")
    assert id_of(dirs[1]) == directory_id
    assert of(places, dirs[1])


def as_a_release_before(dirs: tuple[str, ...]) -> None:
    """Neither directories nor places are in the store, nor is the store named."""
    with sqlite3.connect(Path(dirs[0], STORE)) as connection:
        for prefix in (b"store", b"directories/"):
            ends = (prefix, prefix + b"~")
            connection.execute("DELETE FROM keys WHERE key >= ? AND key < ?", ends)
        rows = connection.execute(
            "SELECT key, value FROM keys WHERE key >= ? AND key < ?",
            (b"partitions/", b"partitions0"),
        ).fetchall()
        for key, value in rows:
            fields = json.loads(value)
            fields["p"] = [partition[:5] for partition in fields["p"]]
            text = json.dumps(fields).encode()
            connection.execute("UPDATE keys SET value = ? WHERE key = ?", (text, key))
    connection.close()
    for one in dirs:
        if (Path(one) / META_PROPERTIES).exists():
            without_store_key(one)


async def test_what_a_release_before_left_is_written_down_at_the_first_start(
    start_node: StartNode, dirs: tuple[str, str, str]
) -> None:
    """From then on a directory is missed."""
    places = await filled(start_node, dirs)
    as_a_release_before(dirs)
    node = await start_node(log_dirs=dirs)
    await check(await node.client(), list(range(PARTITIONS)), b"kept")
    await node.stop()
    replaced_by_nothing(dirs[1])
    node = await start_node(log_dirs=dirs)
    await check_offline(await node.client(), of(places, dirs[1]))


async def test_a_disk_is_missing_at_the_first_start_of_this_release(
    start_node: StartNode, dirs: tuple[str, str, str]
) -> None:
    """No directory is known yet; partitions that are nowhere and an empty folder say it."""
    places = await filled(start_node, dirs)
    as_a_release_before(dirs)
    replaced_by_nothing(dirs[1])
    node = await start_node(log_dirs=dirs)
    await check_offline(await node.client(), of(places, dirs[1]))
    assert names_in(dirs[1]) == set()
    assert "varve dirs drop" in (await node.page("/readyz"))[1]
    await node.stop()
    mounted_again(dirs[1])
    node = await start_node(log_dirs=dirs)
    await check(await node.client(), list(range(PARTITIONS)), b"kept")
    assert (await node.page("/readyz"))[1] == "ready\n"


async def test_groups_on_a_missing_disk_are_not_begun_anew(
    start_node: StartNode, dirs: tuple[str, str, str]
) -> None:
    """Else their members would read everything again, or nothing."""
    node: Node = await start_node(log_dirs=dirs, offsets_topic_num_partitions=3)
    client = await node.client()
    await client.create_topic("t", 1)
    assert node.broker.groups is not None
    by_partition = {}
    for number in range(20):
        await client.commit(f"g{number}", "t", {0: number})
        by_partition[f"g{number}"] = node.broker.groups.partition_for(f"g{number}")
    places = await placed(client)
    await node.stop()
    replaced_by_nothing(dirs[1])
    node = await start_node(log_dirs=dirs, offsets_topic_num_partitions=3)
    client = await node.client()
    for number, (group, partition) in enumerate(by_partition.items()):
        code, offset = await client.try_committed(group, "t")
        if places["__consumer_offsets", partition] == dirs[1]:
            assert code in {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE}
        else:
            assert (code, offset) == (0, number)
