"""`varve tier` on a bucket alone."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from broker.remote.tier_settings import tier_settings
from cli.tier import tier
from cli.tier.tier_bucket import bucket_settings
from storage.checkpoints.checkpoint_files import encode_epochs
from storage.environment.local_filesystem import LocalFilesystem
from tests.fakes.kafka.library_clients import FakeCluster
from tests.unit.cli.commands import Outcome, Shell
from tests.unit.cli.tier.test_tier_bucket import parsed
from tests.unit.tiered.format.closed_segments import FACTS, make_segment
from tiered.errors import StoreTimeoutError
from tiered.format.object_keys import ObjectKeys
from tiered.maintenance.unanswered import UNANSWERED_MAX
from tiered.metadata.history import HistoryState, HistorySummary, PartitionHistory, encode_history
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.storage_manager.remote_storage_manager import RemoteStorageManager
from tiered.tier import Fault
from tiered.worker.assembly import build_tier

Type = Callable[..., Outcome]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str]) -> Any:
    return Shell(tier, FakeCluster().admin, capsys)


def fill(directory: Path, *words: str, segments: int = 2) -> None:
    """Copy some segments of partition `orders.eu-west-3` into the bucket that the options name."""

    async def copy() -> None:
        opened = build_tier(tier_settings(bucket_settings(parsed(*words))))
        start = 1000
        for number in range(segments):
            segment = make_segment([b"x" * 100, b"y" * 100], start_offset=start, copy_id=number + 1)
            files = segment.write(LocalFilesystem(), str(directory / "log"))
            # The log began with the first of them.
            files = replace(files, leader_epochs=encode_epochs([(2, 1000)]))
            await opened.copy_segment(segment.metadata, files, FACTS)
            start = segment.metadata.end_offset + 1
        await opened.close()

    asyncio.run(copy())


def test_ls_shows_what_the_manifests_say(shell: Type, tmp_path: Path) -> None:
    """With no broker at all."""
    root = str(tmp_path / "store")
    (tmp_path / "store").mkdir()
    assert shell("ls", "--root", root).out == "no segments\n"
    fill(tmp_path, "--root", root)
    cells = shell("ls", "--root", root).cells
    assert cells[1][0] == "orders.eu-west-3"
    assert cells[1][2:5] == ["1000", "1040", "2"]
    (row,) = shell("ls", "--root", root, "--json").document
    assert (row["clusterId"], row["segments"], row["start"]) == ("cluster-1", 2, 1000)
    assert shell("ls", "--root", root, "--topic", "other").out == "no segments\n"


def tell(root: Path, **changes: Any) -> Path:
    """Put a history beside the segments of the partition."""
    partition = make_segment([b"x"]).metadata.partition
    found = HistorySummary(
        partition, "cluster-1", 8, HistoryState.LIVE, 4, 5, 1000, 1040, 1030, ((2, 1000),)
    )._replace(**changes)
    path = root / ObjectKeys().history_key(partition)
    path.write_bytes(encode_history(PartitionHistory(found, ())))
    return path


def test_ls_heeds_histories(shell: Type, tmp_path: Path) -> None:
    root = tmp_path / "store"
    fill(tmp_path, "--root", str(root))
    path = tell(root, log_start_offset=1025)
    cells = shell("ls", "--root", str(root)).cells
    assert cells[1][2:5] == ["1025", "1040", "2"]
    (row,) = shell("ls", "--root", str(root), "--json").document
    assert (row["start"], row["committedEnd"], row["deleting"]) == (1025, 1030, False)
    tell(root, state=HistoryState.DELETING)
    assert "(being deleted)" in shell("ls", "--root", str(root)).out
    path.write_bytes(b"damaged")
    done = shell("ls", "--root", str(root))
    assert done.status == 1
    assert "varve-history" in done.err


def test_verify_looks_at_histories(shell: Type, tmp_path: Path) -> None:
    root = tmp_path / "store"
    fill(tmp_path, "--root", str(root))
    path = tell(root)
    assert shell("verify", "--root", str(root)).status == 0
    path.write_bytes(path.read_bytes()[:-1])
    for which in ([], ["orders.eu-west"], ["orders.eu-west-3"]):
        done = shell("verify", *which, "--root", str(root))
        assert done.status == 1
        assert "fails its CRC" in done.err
    assert shell("verify", "orders.eu-west-4", "--root", str(root)).status == 0


def test_verify_finds_a_segment_of_which_nothing_is_left(shell: Type, tmp_path: Path) -> None:
    """No object is damaged and no history names it: the offsets around it tell."""
    root = tmp_path / "store"
    fill(tmp_path, "--root", str(root), segments=3)
    assert shell("verify", "--root", str(root)).status == 0
    for path in [path for path in root.rglob("*") if "00000000000000001020-" in path.name]:
        path.unlink()
    for which in ([], ["orders.eu-west"], ["orders.eu-west-3"]):
        done = shell("verify", *which, "--root", str(root))
        assert done.status == 1
        assert "offsets 1020 to 1039 are missing" in done.err
    assert shell("verify", "--root", str(root), "--json").document["missing"]
    assert shell("verify", "orders.eu-west-4", "--root", str(root)).status == 0
    tell(root, log_start_offset=1040, stable_end_offset=1060, end_offset=1060)
    assert shell("verify", "--root", str(root)).status == 0


@pytest.mark.parametrize(("start", "status"), [(1000, 0), (1020, 1)])
def test_verify_passes_over_what_is_removed_meanwhile(
    shell: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, start: int, status: int
) -> None:
    """A broker expires the oldest while the command reads; what goes in the middle is missing."""
    root = tmp_path / "store"
    fill(tmp_path, "--root", str(root), segments=3)
    verify = RemoteStorageManager.verify_segment

    async def removed(
        manager: RemoteStorageManager, metadata: RemoteLogSegmentMetadata
    ) -> Sequence[Fault]:
        if metadata.start_offset == start:
            for path in [path for path in root.rglob("*") if f"{start:020}-" in path.name]:
                path.unlink()
        return await verify(manager, metadata)

    monkeypatch.setattr(RemoteStorageManager, "verify_segment", removed)
    done = shell("verify", "--root", str(root), "--json")
    assert (done.status, done.document["segments"], done.document["faulty"]) == (status, 2, [])
    assert len(done.document["missing"]) == status


def test_verify_gives_up_when_the_store_does_not_answer(
    shell: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "store"
    fill(tmp_path, "--root", str(root), segments=5)

    async def unanswered(*_: object) -> Sequence[Fault]:
        raise StoreTimeoutError("no answer")

    monkeypatch.setattr(RemoteStorageManager, "verify_segment", unanswered)
    done = shell("verify", "--root", str(root), "--json")
    assert (done.status, done.document["segments"]) == (1, 0)
    assert done.document["unread"][UNANSWERED_MAX:] == [
        "2 more segments, as the object store does not answer"
    ]


def test_ls_complains_of_segments_that_are_not_whole(shell: Type, tmp_path: Path) -> None:
    """And ends with status 1."""
    root = tmp_path / "store"
    fill(tmp_path, "--root", str(root))
    next(root.glob("**/*.log")).unlink()
    done = shell("ls", "--root", str(root))
    assert done.status == 1
    assert done.err.count("is missing") == 1


def test_verify_finds_one_flipped_byte(shell: Type, tmp_path: Path) -> None:
    """Of a topic, of a partition, of all."""
    root = tmp_path / "store"
    fill(tmp_path, "--root", str(root))
    assert shell("verify", "--root", str(root)).status == 0
    log = sorted(root.glob("**/*.log"))[1]
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    for which in ([], ["orders.eu-west"], ["orders.eu-west-3"]):
        done = shell("verify", *which, "--root", str(root))
        assert done.status == 1
        assert "orders.eu-west-3 1020..1040: " in done.err
    assert shell("verify", "orders.eu-west-4", "--root", str(root)).status == 0
    assert shell("verify", "other", "--root", str(root)).status == 0


def keys(directory: Path, name: str) -> list[str]:
    """A key pair's files, as options."""
    pair = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    private, public = directory / f"{name}.pem", directory / f"{name}.pub"
    private.write_bytes(
        pair.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    public.write_bytes(
        pair.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
    )
    prefix = f"rsm.config.encryption.key.pairs.{name}"
    return [
        *("--set", f"{prefix}.public.key.file={public}"),
        *("--set", f"{prefix}.private.key.file={private}"),
    ]


def ring(active: str, *names: str) -> list[str]:
    """Options for a ring."""
    return [
        *("--set", "rsm.config.encryption.enabled=true"),
        *("--set", f"rsm.config.encryption.key.pair.id={active}"),
        *("--set", f"rsm.config.encryption.key.pairs={','.join(names)}"),
    ]


def test_keys_are_rotated_and_the_old_pair_can_go(shell: Type, tmp_path: Path) -> None:
    """A second run has nothing to do."""
    root = ["--root", str(tmp_path / "store")]
    old, new = keys(tmp_path, "old"), keys(tmp_path, "new")
    fill(tmp_path, *root, *old, *ring("old", "old"))
    both = [*root, *old, *new, *ring("new", "old", "new")]
    assert shell("verify", *root, *new, *ring("new", "new")).status == 1
    assert shell("rotate-keys", *both).out == (
        "rewrapped 2 keys with new; 0 used it already, 0 segments are not encrypted\n"
    )
    assert shell("rotate-keys", *both, "--topic", "orders.eu-west", "--json").document == {
        "keyPair": "new",
        "rewrapped": 0,
        "alreadyActive": 2,
        "notEncrypted": 0,
        "faults": [],
    }
    assert shell("verify", *root, *new, *ring("new", "new")).status == 0


def test_rotation_without_the_old_pair_is_told(shell: Type, tmp_path: Path) -> None:
    """It is still needed; without encryption there is nothing to rotate."""
    root = ["--root", str(tmp_path / "store")]
    fill(tmp_path, *root, *keys(tmp_path, "old"), *ring("old", "old"))
    done = shell("rotate-keys", *root, *keys(tmp_path, "new"), *ring("new", "new"))
    assert done.status == 1
    assert "the old key pair is still needed" in done.err
    assert "encryption is not enabled" in shell("rotate-keys", *root).err
