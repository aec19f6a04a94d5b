"""What log directories say, and how it is carried from machine to machine."""

from pathlib import Path
from uuid import UUID

import pytest

from broker.offline.directory_facts import (
    FactsError,
    decode_facts,
    encode_facts,
    read_facts,
)
from protocol.records.builder import build_batch
from storage.checkpoints.leader_epochs import LeaderEpochCache
from storage.checkpoints.log_directory import LogDirectory
from storage.checkpoints.member_note import MemberNote, write_member_note
from storage.checkpoints.partition_metadata import encode_partition_metadata
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SystemRandomness
from storage.types.log_files import LOG_SUFFIX, log_file_name
from storage.types.uuid_text import format_uuid
from tests.unit.broker.offline.facts import INCARNATION, TOPIC, node, replica

FILESYSTEM = LocalFilesystem()


def directory(path: Path, node_id: int = 3, *, claimed: bool = True) -> LogDirectory:
    made = LogDirectory(str(path), FILESYSTEM)
    made.open()
    if claimed:
        made.claim("c", node_id, SystemRandomness(), store_id=INCARNATION)
    return made


def partition(path: Path, name: str, topic_id: UUID, epoch: int, batch_epoch: int) -> None:
    folder = path / name
    folder.mkdir()
    (folder / "partition.metadata").write_bytes(encode_partition_metadata(topic_id))
    LeaderEpochCache(str(folder / "leader-epoch-checkpoint"), FILESYSTEM).assign(epoch, 0)
    batch = build_batch([(None, b"v", (), 0)], leader_epoch=batch_epoch)
    (folder / log_file_name(0, LOG_SUFFIX)).write_bytes(bytes(batch))


def test_epochs_are_those_of_checkpoint_and_batches(tmp_path: Path) -> None:
    """A checkpoint may be behind the log, which was not flushed; and before it, unwritten."""
    one = directory(tmp_path / "a")
    write_member_note(FILESYSTEM, one.path, MemberNote("boot", 9, 50, brokers=(3, 4)))
    partition(tmp_path / "a", "t-0", TOPIC, 4, 6)
    partition(tmp_path / "a", "t-1", TOPIC, 8, 6)
    partition(tmp_path / "a", f"u-0.{'0' * 32}-delete", TOPIC, 1, 1)
    partition(tmp_path / "a", f"u-1.{'0' * 32}-stray", TOPIC, 1, 1)
    facts = read_facts(FILESYSTEM, [one])
    assert (facts.node_id, facts.cluster_id, facts.epoch, facts.brokers) == (3, "c", 9, (3, 4))
    (found,) = facts.directories
    assert (found.revision, found.incarnation) == (50, format_uuid(INCARNATION))
    shown = [(r.topic, r.index, r.epoch, r.end_epoch, r.end) for r in found.replicas]
    assert shown == [("t", 0, 6, 6, 1), ("t", 1, 8, 6, 1), ("u", 0, 1, 1, 1)]
    assert [r.is_deleted for r in found.replicas] == [False, False, True]
    one.close(mark_clean=False)


def test_directories_of_two_brokers_are_not_one(tmp_path: Path) -> None:
    pair = [directory(tmp_path / "a", 1), directory(tmp_path / "b", 2)]
    with pytest.raises(FactsError, match="of different brokers"):
        read_facts(FILESYSTEM, pair)


def test_a_directory_of_no_cluster_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FactsError, match="is not a log directory of a cluster"):
        read_facts(FILESYSTEM, [directory(tmp_path / "a", claimed=False)])


def test_facts_come_back_as_they_were_written() -> None:
    facts = node(1, replica(), replica(1, deleted=True), brokers=(1, 2))
    assert decode_facts(encode_facts(facts), "file") == facts


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"v":2}', b'{"v":1,"directories":[{}]}'])
def test_a_file_of_something_else_is_refused(data: bytes) -> None:
    with pytest.raises(FactsError, match=r"broker-1\.json"):
        decode_facts(data, "broker-1.json")
