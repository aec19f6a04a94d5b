"""Index sets on the disk: what is kept at a start, and what is refused."""

import errno
import json
from struct import pack
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records.batch import crc32c
from storage.errors import CorruptFileError
from tests.fakes.filesystem import FakeFilesystem
from tiered.cache.index_files import load, mark_deleted, remove_deleted, scan, stem_of
from tiered.format.manifest_layout import seal
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    TopicIdPartition,
)

METADATA = RemoteLogSegmentMetadata(
    RemoteLogSegmentId(TopicIdPartition(UUID(int=7), "t", 0), UUID(int=5)),
    *(100, 199, 0, 1, 0, 1000),
    (SegmentEpoch(0, 100),),
)
STEM = stem_of(METADATA)
PATH = f"/i/{STEM}"


def _write(filesystem: FakeFilesystem, name: str, data: bytes) -> None:
    filesystem.mkdir("/i")
    file = filesystem.open(f"/i/{name}", create=True)
    file.truncate(0)
    file.write_at(data, 0)
    file.close()


def _manifest(files: dict[str, bytes], log_bytes: int = 1000) -> bytes:
    names = {"index": "offset", "timeindex": "timestamp", "txnindex": "transaction"}
    sums = {
        name: {"size": len(files[suffix]), "crc32c": crc32c(files[suffix])}
        for suffix, name in names.items()
        if suffix in files
    }
    fields = {
        "chunkIndex": {"originalChunkSize": 256, "originalFileSize": log_bytes},
        "remoteLogSegmentMetadata": {"varve": {"sideFiles": sums}},
    }
    return seal(json.dumps(fields).encode()[: -len("}}}")] + b",")


def _entries(*entries: tuple[int, int]) -> bytes:
    return b"".join(pack(">ii", *entry) for entry in entries)


def _whole(filesystem: FakeFilesystem, **changes: bytes) -> None:
    """A set whose manifest is of its files, whatever is in them."""
    files = {
        "index": _entries((5, 100), (20, 300), (60, 700)),
        "timeindex": pack(">qi", 1, 5),
        **changes,
    }
    for suffix, data in ({"manifest": _manifest(files)} | files).items():
        _write(filesystem, f"{STEM}.{suffix}", data)


def _names(filesystem: FakeFilesystem) -> set[str]:
    return {entry.name for entry in filesystem.list_directory("/i")}


def test_names_are_kafkas() -> None:
    assert STEM == "100_AAAAAAAAAAAAAAAAAAAABQ"


def test_whole_sets_are_found_and_the_rest_goes() -> None:
    filesystem = FakeFilesystem()
    _whole(filesystem)
    _write(filesystem, f"{STEM}.txnindex.tmp", b"x")
    _write(filesystem, f"{STEM}.index.deleted", b"x")
    other = "200_AAAAAAAAAAAAAAAAAAAABg"
    _write(filesystem, f"{other}.index", b"")
    _write(filesystem, f"{other}.timeindex", b"")
    found = scan(filesystem, "/i")
    assert [(set_.id, set_.stem) for set_ in found] == [(METADATA.id, STEM)]
    assert found[0].size == 24 + 12 + filesystem.file_size(f"{PATH}.manifest")
    assert _names(filesystem) == {f"{STEM}.index", f"{STEM}.timeindex", f"{STEM}.manifest"}


def test_what_has_another_name_is_left_alone() -> None:
    """The path may have been pointed at a log directory, the metadata store with it."""
    filesystem = FakeFilesystem()
    strangers = {
        *("varve-metadata.sqlite", "varve-metadata.sqlite-wal", "meta.properties", ".lock"),
        *("stray", "x_y.index", "00000000000000000000.log", "00000000000000000000.index"),
        *("recovery-point-offset-checkpoint.tmp", "100.index.deleted", f"{STEM}.log"),
        *(f"{STEM}", f"{STEM}.index.bak", f"{STEM}.tmp", f"-{STEM}.index", f" {STEM}.manifest"),
    }
    for name in strangers:
        _write(filesystem, name, b"precious")
    assert scan(filesystem, "/i") == []
    assert _names(filesystem) == strangers


@pytest.mark.parametrize(
    ("suffix", "data"),
    [
        ("index", b"x" * 9),
        ("timeindex", b"x" * 13),
        ("txnindex", b"x" * 33),
        ("manifest", b"{}"),
        ("manifest", b"\xff"),
    ],
)
def test_a_set_that_is_not_sane_goes(suffix: str, data: bytes) -> None:
    filesystem = FakeFilesystem()
    _whole(filesystem, **{suffix: data})
    assert scan(filesystem, "/i") == []
    assert _names(filesystem) == set()


def test_a_manifest_that_cannot_be_read_makes_no_set() -> None:
    filesystem = FakeFilesystem()
    _whole(filesystem)
    filesystem.fail("read", errno.EIO)
    assert scan(filesystem, "/i") == []


def test_a_set_is_loaded() -> None:
    filesystem = FakeFilesystem()
    _whole(filesystem, txnindex=pack(">hqqqq", 0, 9, 120, 130, 131))
    indexes = load(filesystem, PATH, METADATA)
    assert indexes.layout.chunks == 4
    assert [indexes.lookup(offset) for offset in (0, 4, 5, 19, 20, 99)] == [
        0,
        0,
        100,
        100,
        300,
        700,
    ]
    assert [indexes.last_position_up_to(p) for p in (0, 99, 100, 699, 700)] == [0, 0, 100, 300, 700]
    assert [indexes.upper_bound(p) for p in (0, 100, 101, 700, 701)] == [6, 6, 21, 61, None]
    assert indexes.aborts.collect(100, 131, 200) == ([(9, 120)], True)
    assert indexes.disk_bytes == 24 + 12 + 34 + filesystem.file_size(f"{PATH}.manifest")
    assert indexes.memory_bytes > 0


def test_an_index_may_be_empty_or_end_in_zeros() -> None:
    filesystem = FakeFilesystem()
    _whole(filesystem, index=b"")
    assert load(filesystem, PATH, METADATA).lookup(50) == 0
    _whole(filesystem, index=_entries((5, 100), (0, 0), (0, 0)))
    assert load(filesystem, PATH, METADATA).lookup(50) == 100


@pytest.mark.parametrize(
    "index",
    [
        b"x",
        _entries((5, 100), (5, 200)),
        _entries((5, 100), (6, 100)),
        _entries((5, 0)),
        _entries((-1, 100)),
        _entries((100, 100)),
        _entries((5, 1000)),
    ],
)
def test_an_index_that_cannot_be_is_refused(index: bytes) -> None:
    filesystem = FakeFilesystem()
    _whole(filesystem, index=index)
    with pytest.raises(CorruptFileError):
        load(filesystem, PATH, METADATA)


def test_disorder_is_found_wherever_it_is() -> None:
    filesystem = FakeFilesystem()
    large = METADATA.__class__(
        METADATA.segment_id, 0, 40_000, 0, 1, 0, 1000_000, (SegmentEpoch(0, 0),)
    )
    entries = [(number, number * 10) for number in range(1, 20_000)]
    for at in (1, 8191, 8192, 8193, 16_384, 19_997):
        disordered = list(entries)
        disordered[at] = (entries[at + 1][0], entries[at][1])
        files = {"index": _entries(*disordered), "timeindex": pack(">qi", 1, 5)}
        _whole(filesystem, **files, manifest=_manifest(files, 1000_000))
        filesystem.rename(f"{PATH}.index", f"/i/{stem_of(large)}.index")
        filesystem.rename(f"{PATH}.timeindex", f"/i/{stem_of(large)}.timeindex")
        filesystem.rename(f"{PATH}.manifest", f"/i/{stem_of(large)}.manifest")
        with pytest.raises(CorruptFileError, match="ascend"):
            load(filesystem, f"/i/{stem_of(large)}", large)


@pytest.mark.parametrize("suffix", ["index", "timeindex", "manifest"])
def test_a_set_that_is_not_complete_is_refused(suffix: str) -> None:
    filesystem = FakeFilesystem()
    _whole(filesystem)
    filesystem.unlink(f"{PATH}.{suffix}")
    with pytest.raises(CorruptFileError):
        load(filesystem, PATH, METADATA)


def test_a_manifest_of_another_log_is_refused() -> None:
    filesystem = FakeFilesystem()
    _whole(filesystem, manifest=_manifest({}, 1001))
    with pytest.raises(CorruptFileError, match="1001"):
        load(filesystem, PATH, METADATA)


@pytest.mark.parametrize("suffix", ["index", "timeindex", "txnindex"])
@pytest.mark.parametrize("damage", ["empty", "missing", "zeros", "flipped"])
def test_a_file_that_is_not_the_one_that_was_copied_is_refused(suffix: str, damage: str) -> None:
    """After a power cut: an empty transaction index would hide what was aborted."""
    filesystem = FakeFilesystem()
    _whole(filesystem, txnindex=pack(">hqqqq", 0, 9, 120, 130, 131))
    load(filesystem, PATH, METADATA)
    data = bytearray(filesystem.read_bytes(f"{PATH}.{suffix}"))
    if damage == "missing":
        filesystem.unlink(f"{PATH}.{suffix}")
    elif damage == "flipped":
        data[-1] ^= 1
        _write(filesystem, f"{STEM}.{suffix}", bytes(data))
    else:
        _write(filesystem, f"{STEM}.{suffix}", bytes(len(data)) if damage == "zeros" else b"")
    with pytest.raises(CorruptFileError):
        load(filesystem, PATH, METADATA)


def test_a_transaction_index_that_was_not_copied_is_refused() -> None:
    filesystem = FakeFilesystem()
    _whole(filesystem)
    _write(filesystem, f"{STEM}.txnindex", pack(">hqqqq", 0, 9, 120, 130, 131))
    with pytest.raises(CorruptFileError, match="txnindex"):
        load(filesystem, PATH, METADATA)


def test_a_manifest_that_was_changed_is_refused() -> None:
    filesystem = FakeFilesystem()
    _whole(filesystem)
    manifest = filesystem.read_bytes(f"{PATH}.manifest").replace(b": 256", b": 257")
    _write(filesystem, f"{STEM}.manifest", manifest)
    with pytest.raises(CorruptFileError, match="CRC"):
        load(filesystem, PATH, METADATA)


@given(st.binary(max_size=100), st.binary(max_size=40), st.binary(max_size=80))
def test_hostile_bytes_are_refused_or_within_the_segment(
    index: bytes, times: bytes, transactions: bytes
) -> None:
    filesystem = FakeFilesystem()
    _whole(filesystem, index=index, timeindex=times, txnindex=transactions)
    try:
        indexes = load(filesystem, PATH, METADATA)
    except CorruptFileError:
        return
    for offset in range(0, 100, 7):
        assert 0 <= indexes.lookup(offset) < 1000


def test_an_evicted_set_leaves_in_two_steps() -> None:
    filesystem = FakeFilesystem()
    _whole(filesystem)
    mark_deleted(filesystem, PATH)
    assert all(name.endswith(".deleted") for name in _names(filesystem))
    remove_deleted(filesystem, PATH)
    assert _names(filesystem) == set()
    mark_deleted(filesystem, PATH)


def test_what_cannot_be_renamed_is_removed() -> None:
    filesystem = FakeFilesystem()
    _whole(filesystem)
    filesystem.fail("rename", errno.EIO)
    mark_deleted(filesystem, PATH)
    assert f"{STEM}.manifest" not in _names(filesystem)
    filesystem.fail("unlink", errno.EIO)
    remove_deleted(filesystem, PATH)
