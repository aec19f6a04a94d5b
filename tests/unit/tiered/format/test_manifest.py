import base64
import json
from array import array
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.records.batch import crc32c
from tests.unit.tiered.format.closed_segments import FACTS, metadata
from tiered.errors import CorruptRemoteDataError
from tiered.format.chunk_index import FixedChunkIndex, VariableChunkIndex
from tiered.format.key_ring import DataKeyEnvelope
from tiered.format.manifest import MANIFEST_BYTES_MAX, UNKNOWN, SegmentManifest, StoredSideFile
from tiered.segment_metadata import SegmentEpoch, SegmentState
from tiered.tier import SideFile

KEY = "t/0/x.rsm-manifest"


def manifest(**changes: Any) -> SegmentManifest:
    """A manifest of a segment of ten chunks."""
    told = replace(
        metadata(),
        segment_leader_epochs=(SegmentEpoch(2, 0), SegmentEpoch(5, 40)),
        state=SegmentState.COPY_SEGMENT_FINISHED,
        custom_metadata=b"\x00\xff",
    )
    whole = SegmentManifest(
        metadata=told,
        chunk_index=FixedChunkIndex(100, 1000, 100, 100),
        chunk_crcs=array("I", range(10)),
        stored_crcs=array("I", range(2**32 - 10, 2**32)),
        side_files={
            kind: StoredSideFile(at * 30, 30, 2, at, 2**32 - 1) for at, kind in enumerate(SideFile)
        },
        compression=False,
        encryption=None,
        topic=FACTS,
        created_ms=1_700_000_000_123,
        software="0.2.0",
    )
    return replace(whole, **changes)


def sealed(fields: dict[str, Any]) -> bytes:
    """These fields with a CRC that fits: what a mistaken writer would leave."""
    # At the end, as it is written.
    fields["remoteLogSegmentMetadata"] = fields.pop("remoteLogSegmentMetadata")
    varve = fields["remoteLogSegmentMetadata"]["varve"]
    varve.pop("crc32c", None)
    varve["crc32c"] = "00000000"
    text = json.dumps(fields, separators=(",", ":")).encode()
    crc = crc32c(text[-4:], crc32c(text[:-12]))
    return text[:-12] + b"%08x" % crc + text[-4:]


def same(left: SegmentManifest, right: SegmentManifest) -> bool:
    return all(
        getattr(left, name) == getattr(right, name)
        for name in SegmentManifest.__slots__
        if name != "chunk_index"
    ) and (left.chunk_index.to_json() == right.chunk_index.to_json())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"compression": True, "chunk_index": VariableChunkIndex(100, 1000, range(5, 15))},
        {"encryption": DataKeyEnvelope("k-1", b"w" * 256, b"a" * 32)},
        {
            "side_files": {
                kind: StoredSideFile(at, 1, 1, 0, 0)
                for at, kind in enumerate(SideFile)
                if kind is not SideFile.TRANSACTION
            }
        },
        {"metadata": replace(metadata(), state=SegmentState.COPY_SEGMENT_FINISHED)},
        {"records": 0},
        {"records": 123_456},
        {"empty_from": 0},
    ],
)
def test_a_manifest_comes_back(changes: dict[str, Any]) -> None:
    """The bucket alone gives back the metadata, and all that reading needs."""
    written = manifest(**changes)
    data = written.to_json()
    assert same(SegmentManifest.from_json(data, KEY), written)
    # Reading and writing again changes nothing: `rewrap` relies on that.
    assert SegmentManifest.from_json(data, KEY).to_json() == data


def test_what_was_empty_before_is_there_or_not() -> None:
    """Manifests of earlier versions do not tell; readers of those pass it over."""
    assert b"emptyFrom" not in manifest().to_json()
    fields = json.loads(manifest(empty_from=0).to_json())
    assert fields["remoteLogSegmentMetadata"]["varve"]["emptyFrom"] == 0
    fields["remoteLogSegmentMetadata"]["varve"]["emptyFrom"] = True
    with pytest.raises(CorruptRemoteDataError, match="emptyFrom"):
        SegmentManifest.from_json(sealed(fields), KEY)


def test_a_count_of_records_is_there_or_not() -> None:
    """Manifests of earlier releases, and of segments that another program copied, have none."""
    assert b"records" not in manifest().to_json()
    fields = json.loads(manifest(records=7).to_json())
    assert fields["remoteLogSegmentMetadata"]["varve"]["records"] == 7
    fields["remoteLogSegmentMetadata"]["varve"]["records"] = -1
    with pytest.raises(CorruptRemoteDataError, match="records is -1"):
        SegmentManifest.from_json(sealed(fields), KEY)


def test_metadata_is_rebuilt_as_finished() -> None:
    """The manifest is written while the segment's state is still COPY_SEGMENT_STARTED."""
    started = replace(metadata(), state=SegmentState.COPY_SEGMENT_STARTED)
    data = manifest(metadata=started).to_json()
    rebuilt = SegmentManifest.from_json(data, KEY).metadata
    assert rebuilt == replace(started, state=SegmentState.COPY_SEGMENT_FINISHED)


def test_text_is_aivens() -> None:
    """Field for field as in SegmentManifestV1SerdeTest.java; ours lies where its reader skips."""
    text = manifest().to_json().decode()
    assert text.startswith(
        '{"version":"1","chunkIndex":{"type":"fixed","originalChunkSize":100,'
        '"originalFileSize":1000,"transformedChunkSize":100,"finalTransformedChunkSize":100},'
        '"segmentIndexes":{"offset":{"position":0,"size":30},'
        '"timestamp":{"position":30,"size":30},"producerSnapshot":{"position":60,"size":30},'
        '"leaderEpoch":{"position":90,"size":30},"transaction":{"position":120,"size":30}},'
        '"compression":false,"remoteLogSegmentMetadata":{"remoteLogSegmentId":'
        '{"topicIdPartition":{"topicId":"-__uAAAAAAAAAAAAAAAAAA",'
        '"topicPartition":{"topic":"orders.eu-west","partition":3}},'
        '"id":"AAAAAAAAAE0AAAAAAAAABQ"},"startOffset":0,"endOffset":99,'
        '"maxTimestampMs":1700000000000,"brokerId":1,"eventTimestampMs":1700000000005,'
        '"segmentLeaderEpochs":{"2":0,"5":40},"varve":{"version":1,'
    )
    without = manifest(
        side_files={
            kind: StoredSideFile(at, 1, 1, 0, 0)
            for at, kind in enumerate(SideFile)
            if kind is not SideFile.TRANSACTION
        },
        encryption=DataKeyEnvelope("k", b"w", b"a"),
    )
    text = without.to_json().decode()
    assert '"transaction":null},"compression":false,"encryption":{"dataKey":"k:dw==",' in text


@given(st.data())
def test_every_flipped_bit_is_found(data: st.DataObject) -> None:
    """A digit more in an offset is good JSON; only the sum tells."""
    whole = bytearray(manifest().to_json())
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(CorruptRemoteDataError) as caught:
        SegmentManifest.from_json(bytes(whole), KEY)
    assert caught.value.key == KEY


@given(st.integers(0, 100))
def test_a_cut_off_manifest_is_found(lost: int) -> None:
    """A store may answer with less than there is."""
    whole = manifest().to_json()
    with pytest.raises(CorruptRemoteDataError) as caught:
        SegmentManifest.from_json(whole[: len(whole) * lost // 101], KEY)
    assert caught.value.position >= -1


@given(st.binary(max_size=40) | st.text('{}[]":,1a', max_size=40).map(str.encode))
def test_any_bytes_are_refused(data: bytes) -> None:
    """And with one kind of error."""
    with pytest.raises(CorruptRemoteDataError):
        SegmentManifest.from_json(data, KEY)


def test_deep_nesting_is_refused() -> None:
    """A forged manifest must not end the process."""
    with pytest.raises(CorruptRemoteDataError):
        SegmentManifest.from_json(b"[" * 1_000_000, KEY)


def test_size_is_bounded() -> None:
    """Before it is parsed."""
    with pytest.raises(CorruptRemoteDataError, match="too large"):
        SegmentManifest.from_json(b" " * (MANIFEST_BYTES_MAX + 1), KEY)


def set_version(fields: dict[str, Any]) -> None:
    fields["version"] = "2"


def set_varve_version(fields: dict[str, Any]) -> None:
    fields["remoteLogSegmentMetadata"]["varve"]["version"] = 2


@pytest.mark.parametrize("change", [set_version, set_varve_version])
@pytest.mark.parametrize("is_sealed", [True, False])
def test_a_newer_version_says_so(change: Callable[[dict[str, Any]], None], is_sealed: bool) -> None:
    """An operator who went back a release must read why; its CRC may be elsewhere by then."""
    fields = json.loads(manifest().to_json())
    change(fields)
    data = sealed(fields) if is_sealed else json.dumps(fields).encode()
    with pytest.raises(CorruptRemoteDataError, match="newer Varve"):
        SegmentManifest.from_json(data, KEY)


def test_a_manifest_of_aivens_plugin_has_no_sums_and_is_read() -> None:
    """More in test_plugin_segments: objects that are made by the published format alone."""
    ours = manifest()
    fields = json.loads(ours.to_json())
    del fields["remoteLogSegmentMetadata"]["varve"]
    found = SegmentManifest.from_json(json.dumps(fields).encode(), "k")
    assert not found.has_sums
    assert found.metadata.segment_id == ours.metadata.segment_id
    assert found.chunk_index.to_json() == ours.chunk_index.to_json()
    assert {entry.crc for entry in found.side_files.values()} == {UNKNOWN}


def _set(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    def change(fields: dict[str, Any]) -> None:
        *way, last = path.split(".")
        for name in way:
            fields = fields[name]
        fields[last] = value

    return change


VARVE = "remoteLogSegmentMetadata.varve."


@pytest.mark.parametrize(
    "change",
    [
        _set("compression", "yes"),
        _set("encryption", {"dataKey": "nocolon", "aad": ""}),
        _set("encryption", {"dataKey": "k:%%", "aad": ""}),
        _set("segmentIndexes.offset", None),
        _set("segmentIndexes.timestamp.position", 31),
        _set("segmentIndexes.timestamp.size", -1),
        _set("chunkIndex.originalFileSize", 100_000),
        _set("remoteLogSegmentMetadata.endOffset", "99"),
        _set("remoteLogSegmentMetadata.segmentLeaderEpochs", {}),
        _set("remoteLogSegmentMetadata.segmentLeaderEpochs", {"5": 0, "2": 40}),
        _set("remoteLogSegmentMetadata.segmentLeaderEpochs", {"2": 40, "5": 0}),
        _set("remoteLogSegmentMetadata.segmentLeaderEpochs", {"x": 0}),
        _set(VARVE + "chunkCrcs", base64.b64encode(b"123").decode()),
        _set(VARVE + "storedCrcs", "%"),
        _set(VARVE + "sideFiles", []),
        _set(VARVE + "overrides", 1),
        _set(VARVE + "partitions", True),
        _set(VARVE + "customMetadata", "zz"),
    ],
)
def test_a_malformed_field_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    """With a CRC that fits: whoever wrote it was mistaken, and it must not become a wrong range."""
    fields = json.loads(manifest().to_json())
    SegmentManifest.from_json(sealed(fields), KEY)
    change(fields)
    with pytest.raises(CorruptRemoteDataError, match="malformed"):
        SegmentManifest.from_json(sealed(fields), KEY)


def test_sizes_of_the_objects() -> None:
    """What is_complete compares with the bucket."""
    assert manifest().log_size == 1000
    assert manifest().indexes_size == 150
