"""A history's bytes: as the table says, whole or refused, and the same after a round trip."""

import sys
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

import cramjam
import pytest
from fastcrc import crc32
from hypothesis import given
from hypothesis import strategies as st

from tiered.errors import CorruptRemoteDataError, RemoteStorageError
from tiered.metadata.history import (
    CONTENT_BYTES_MAX,
    HISTORY_BYTES_MAX,
    HistoryState,
    HistorySummary,
    NewerHistoryError,
    PartitionHistory,
    decode_history,
    decode_summary,
    encode_history,
    encoding,
    seal,
)
from tiered.metadata.records import encode_segment_snapshot
from tiered.segment_metadata import (
    RemoteLogSegmentId,
    RemoteLogSegmentMetadata,
    SegmentEpoch,
    SegmentState,
    TopicIdPartition,
)

KEY = "orders-id/3/varve-history"
PARTITION = TopicIdPartition(UUID(int=5), "orders", 3)
GOLDEN = Path(__file__).parent / "golden" / "varve-history-1.bin"


def segment(number: int, start: int, **changes: Any) -> RemoteLogSegmentMetadata:
    fields: dict[str, Any] = {
        "segment_id": RemoteLogSegmentId(PARTITION, UUID(int=number)),
        "start_offset": start,
        "end_offset": start + 9,
        "max_timestamp_ms": 1_700_000_000_000,
        "broker_id": 1,
        "event_timestamp_ms": 1_700_000_000_500,
        "segment_size_bytes": 1000,
        "segment_leader_epochs": (SegmentEpoch(0, start),),
        "state": SegmentState.COPY_SEGMENT_FINISHED,
    }
    return RemoteLogSegmentMetadata(**fields | changes)


def history(*segments: RemoteLogSegmentMetadata, **changes: Any) -> PartitionHistory:
    summary = HistorySummary(
        partition=PARTITION,
        cluster_id="cluster",
        partition_count=8,
        state=HistoryState.LIVE,
        leader_epoch=7,
        written_ms=1_700_000_001_000,
        log_start_offset=5,
        end_offset=20,
        stable_end_offset=18,
        leader_epochs=((0, 5), (2, 11)),
    )
    return PartitionHistory(summary._replace(**changes), segments)


TWO = history(
    segment(1, 0),
    segment(
        2,
        10,
        segment_leader_epochs=(SegmentEpoch(0, 10), SegmentEpoch(2, 11)),
        custom_metadata=b"\x01\x02",
        txn_index_empty=True,
    ),
)


def content_of(one: PartitionHistory) -> bytearray:
    content = bytearray()
    for _ in encoding(one, content):
        pass
    return content


def sealed(content: bytes, *, size: int | None = None, version: int = 1) -> bytes:
    """An object with a right sum, whatever is in it."""
    data = b"vrvh" + version.to_bytes(2, "big")
    data += (len(content) if size is None else size).to_bytes(4, "big")
    data += bytes(cramjam.zstd.compress(content))
    return data + crc32.iscsi(data).to_bytes(4, "big")


def test_byte_by_byte() -> None:
    expected = (
        UUID(int=5).bytes
        + b"\x00\x00\x00\x03\x00\x00\x00\x08\x00\x00\x00\x00\x07"
        + (1_700_000_001_000).to_bytes(8, "big")
        + (5).to_bytes(8, "big")
        + (20).to_bytes(8, "big")
        + (18).to_bytes(8, "big")
        + b"\x00\x07cluster\x00\x06orders"
        + b"\x00\x00\x00\x02"
        + b"\x00\x00\x00\x00" + (5).to_bytes(8, "big")
        + b"\x00\x00\x00\x02" + (11).to_bytes(8, "big")
        + b"\x00\x00\x00\x02"
    )  # fmt: skip
    for one in TWO.segments:
        record = encode_segment_snapshot(one)
        expected += len(record).to_bytes(4, "big") + record
    data = encode_history(TWO)
    assert data[:10] == b"vrvh\x00\x01" + len(expected).to_bytes(4, "big")
    assert bytes(cramjam.zstd.decompress(data[10:-4])) == expected
    assert data[-4:] == crc32.iscsi(data[:-4]).to_bytes(4, "big")


def test_a_history_of_the_first_release_is_read() -> None:
    """The file was written by the first version of this code, and stays as it is."""
    assert decode_history(GOLDEN.read_bytes(), KEY) == TWO


int32 = st.integers(-1, (1 << 31) - 1)
offsets = st.integers(0, (1 << 63) - 20)


@st.composite
def histories(draw: st.DrawFn) -> PartitionHistory:
    start, stable_end, end = sorted(draw(st.tuples(offsets, offsets, offsets)))
    epochs = sorted(draw(st.sets(st.integers(0, 1000), max_size=5)))
    at = sorted(draw(st.lists(offsets, min_size=len(epochs), max_size=len(epochs))))
    starts = sorted(draw(st.lists(offsets, max_size=5)))
    return history(
        *(
            segment(number, first, custom_metadata=draw(st.none() | st.binary(max_size=9)))
            for number, first in enumerate(starts)
        ),
        cluster_id=draw(st.text(max_size=30)),
        partition_count=draw(st.integers(0, (1 << 31) - 1)),
        state=draw(st.sampled_from(HistoryState)),
        leader_epoch=draw(int32),
        written_ms=draw(offsets),
        log_start_offset=start,
        stable_end_offset=stable_end,
        end_offset=end,
        leader_epochs=tuple(zip(epochs, at, strict=True)),
    )


@given(histories())
def test_what_is_written_is_read(one: PartitionHistory) -> None:
    data = encode_history(one)
    assert decode_history(data, KEY) == one
    assert decode_summary(data, KEY) == one.summary


@given(st.data())
def test_no_damage_goes_unnoticed(data: st.DataObject) -> None:
    whole = bytearray(encode_history(TWO))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    with pytest.raises(CorruptRemoteDataError) as caught:
        decode_history(bytes(whole), KEY)
    # A version that nobody knows, behind a sum that does not fit, is damage.
    assert not isinstance(caught.value, NewerHistoryError)
    assert caught.value.key == KEY


@given(st.integers(0, 200))
def test_no_cut_goes_unnoticed(length: int) -> None:
    whole = encode_history(TWO)
    with pytest.raises(CorruptRemoteDataError):
        decode_history(whole[: min(length, len(whole) - 1)], KEY)
    with pytest.raises(CorruptRemoteDataError):
        decode_history(whole + b"\0", KEY)


@given(st.binary(max_size=300))
def test_what_has_a_right_sum_and_makes_no_sense_is_refused(content: bytes) -> None:
    with pytest.raises(CorruptRemoteDataError):
        decode_history(sealed(content), KEY)


@given(st.integers(0, 250), st.integers(0, 255))
def test_a_wrong_byte_behind_a_right_sum_is_an_error_or_another_history(at: int, to: int) -> None:
    content = content_of(TWO)
    content[at % len(content)] = to
    with suppress(CorruptRemoteDataError):
        assert isinstance(decode_history(sealed(bytes(content)), KEY), PartitionHistory)


def test_a_newer_version_is_told_apart_from_damage() -> None:
    with pytest.raises(NewerHistoryError, match="version 2, this program reads 1"):
        decode_history(sealed(b"anything at all", version=2), KEY)
    with pytest.raises(NewerHistoryError):
        decode_summary(sealed(b"", version=300), KEY)


def test_a_bomb_takes_no_more_memory_than_it_claims() -> None:
    zeros = bytes(16 * 1024 * 1024)
    with pytest.raises(CorruptRemoteDataError, match="not a zstd frame of 100 bytes"):
        decode_history(sealed(zeros, size=100), KEY)
    with pytest.raises(CorruptRemoteDataError, match="claims"):
        decode_history(sealed(b"", size=CONTENT_BYTES_MAX + 1), KEY)
    with pytest.raises(CorruptRemoteDataError, match="has 3 bytes of content, not 4"):
        decode_history(sealed(b"abc", size=4), KEY)
    with pytest.raises(CorruptRemoteDataError, match="no history has"):
        decode_history(bytes(HISTORY_BYTES_MAX + 1), KEY)


def test_counts_beyond_the_bytes_there_are_are_refused_before_anything_is_made() -> None:
    content = content_of(history(leader_epochs=()))
    for at, name in ((-8, "leader epochs"), (-4, "segments")):
        forged = bytearray(content)
        forged[at : at + 4 or None] = b"\xff\xff\xff\xff"
        with pytest.raises(CorruptRemoteDataError, match=name):
            decode_history(sealed(bytes(forged)), KEY)


@pytest.mark.parametrize(
    "wrong",
    [
        history(log_start_offset=21),
        history(stable_end_offset=21),
        history(stable_end_offset=4),
        history(log_start_offset=-1),
        history(partition_count=-1),
        history(leader_epochs=((2, 5), (1, 6))),
        history(leader_epochs=((1, 6), (2, 5))),
        history(segment(1, 10), segment(2, 0)),
        history(segment(1, 0, state=SegmentState.DELETE_SEGMENT_STARTED)),
    ],
    ids=str,
)
def test_what_contradicts_itself_is_refused(wrong: PartitionHistory) -> None:
    with pytest.raises(CorruptRemoteDataError, match="malformed"):
        decode_history(encode_history(wrong), KEY)


def test_one_that_nobody_would_read_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tiered.metadata.history.CONTENT_BYTES_MAX", 200)
    with pytest.raises(RemoteStorageError, match="more than 200 bytes"):
        encode_history(TWO)
    monkeypatch.setattr("tiered.metadata.history.HISTORY_BYTES_MAX", 100)
    with pytest.raises(RemoteStorageError, match="too large"):
        seal(content_of(history()) + bytearray(range(200)))


def test_a_long_history_is_small_and_read_in_few_calls() -> None:
    """10,000 segments: a tenth of what docs promise for 100,000 (times: `bench.pipeline_plan`)."""
    segments = 10_000
    one = history(
        *(segment(hash((7, number)) & (1 << 120) - 1, 10 * number) for number in range(segments)),
        end_offset=10 * segments,
    )
    data = encode_history(one)
    assert len(data) < 35 * segments
    calls = 0

    def count(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        decoded = decode_history(data, KEY)
    finally:
        sys.setprofile(None)
    assert decoded == one
    assert calls < 20 * segments
    assert decode_summary(data, KEY) == one.summary
