"""The untimed pass notices what a broken broker would do to a log."""

import socket
import struct
import threading
from contextlib import closing

import pytest

from bench import wire
from bench.verify import VerificationError, verify_partition
from protocol.hot import fetch as hot_fetch
from tests.harness.broker_headers import encode_response_header


class Shelf:
    """A broker that answers Fetch from a list of batches, whatever is in them."""

    def __init__(self, batches: list[bytes]) -> None:
        self.log = b"".join(batches)
        self.ours, self.theirs = socket.socketpair()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with closing(self.theirs):
            while True:
                try:
                    wire.receive(self.theirs)
                except (wire.WireError, OSError):
                    return
                answer = hot_fetch.FetchPartitionResponse(0, 0, 9, 9, 0, None, records=self.log)
                pieces = hot_fetch.encode_response([("t", [answer])], wire.FETCH_VERSION)
                body = b"".join(bytes(p) for p in pieces)
                head = encode_response_header(wire.FETCH, wire.FETCH_VERSION, 0)
                self.theirs.sendall(struct.pack(">i", len(head) + len(body)) + head + body)


def batch_at(offset: int, values: list[bytes]) -> bytes:
    return struct.pack(">q", offset) + wire.record_batch(values)[8:]


@pytest.fixture
def good() -> list[bytes]:
    return [batch_at(0, [b"a", b"end"]), batch_at(2, [b"end"])]


def verify(batches: list[bytes], end_offset: int, **expected: object) -> int:
    shelf = Shelf(batches)
    with closing(shelf.ours):
        found = verify_partition(
            shelf.ours,
            "t",
            0,
            end_offset=end_offset,
            **expected,  # type: ignore[arg-type]  # passed through
        )
    return found.records


def test_good_log_passes(good: list[bytes]) -> None:
    """Three records, as acknowledged."""
    assert verify(good, 3, expected_records=3, value=b"end") == 3


def test_flipped_bit_is_found(good: list[bytes]) -> None:
    """CRC-32C of every batch."""
    damaged = bytearray(good[1])
    damaged[-2] ^= 1
    with pytest.raises(VerificationError, match="CRC-32C"):
        verify([good[0], bytes(damaged)], 3)


def test_gap_is_found(good: list[bytes]) -> None:
    """Offsets follow one another."""
    with pytest.raises(VerificationError, match="got a batch 3"):
        verify([good[0], batch_at(3, [b"end"])], 4)


def test_lost_record_is_found(good: list[bytes]) -> None:
    """Fewer records than were acknowledged."""
    with pytest.raises(VerificationError, match="4 were acknowledged"):
        verify(good, 3, expected_records=4)


def test_other_value_is_found(good: list[bytes]) -> None:
    """A batch with a good checksum and foreign bytes."""
    with pytest.raises(VerificationError, match="other bytes"):
        verify([good[0], batch_at(2, [b"foe"])], 3, value=b"end")
