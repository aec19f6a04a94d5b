from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.read.bytes.batch_runs import BATCH_BYTES_MAX, BatchRun, OffsetBounds, batch_runs
from pipeline.read.bytes.chunk_stream import CARRY_BYTES_MAX
from pipeline.read.read_errors import DamagedBatchError, DamagedDataError, ReadError
from protocol.records.batch import HEADER_SIZE, LOG_OVERHEAD
from tests.unit.tiered.format.closed_segments import batch

KEY = "t/0.log"


class Memory:
    """Bytes of a log in memory of the sizes told; what it gave before is overwritten."""

    def __init__(self, log: bytes, sizes: Sequence[int]) -> None:
        self._log = log
        self._sizes = [*sizes, len(log)]
        self._at = 0
        self._given: bytearray | None = None
        self.carried: list[int] = []

    def next(self, carry: memoryview) -> memoryview | None:
        if self._at == len(self._log):
            return None
        size = self._sizes.pop(0)
        data = bytearray(bytes(carry) + self._log[self._at : self._at + size])
        self._at = min(self._at + size, len(self._log))
        self.carried.append(len(carry))
        if self._given is not None:
            self._given[:] = bytes(len(self._given))
        self._given = data
        return memoryview(data)

    def close(self) -> None: ...


def runs_of(
    log: bytes, sizes: Sequence[int] = (), position: int = 0, bounds: OffsetBounds | None = None
) -> list[tuple[BatchRun, bytes]]:
    """Each run, and what its data was while it was valid."""
    stream = Memory(log, sizes)
    found = batch_runs(stream, KEY, position, position + len(log), bounds)
    return [(run, bytes(run.data)) for run in found]


@given(
    payloads=st.lists(st.binary(max_size=100), min_size=1, max_size=8),
    sizes=st.lists(st.integers(1, 150), max_size=20),
    position=st.integers(0, 1 << 30),
    checked=st.booleans(),
)
def test_runs_are_whole_batches_wherever_memory_ends(
    payloads: list[bytes], sizes: list[int], position: int, checked: bool
) -> None:
    batches = [batch(10 * number, 10, payload) for number, payload in enumerate(payloads)]
    log = b"".join(batches)
    starts = {sum(map(len, batches[:number])) + position for number in range(len(batches))}
    bounds = OffsetBounds(0, 10 * len(batches)) if checked else None
    at = position
    offset = 0
    for run, data in runs_of(log, sizes, position, bounds):
        assert run.position == at
        assert run.position in starts
        assert data == log[at - position : at - position + len(data)]
        assert run.first_offset == offset
        at += len(data)
        offset = run.next_offset
    assert at == position + len(log)
    assert offset == 10 * len(batches)


def test_only_the_rest_of_a_batch_is_carried() -> None:
    batches = [batch(number, 1, bytes(39)) for number in range(10)]
    stream = Memory(b"".join(batches), [250, 250, 250])
    assert len(list(batch_runs(stream, KEY, 0, 1000))) == 4
    assert stream.carried == [0, 50, 0, 50]


def test_a_batch_that_is_too_large_to_be_carried_is_joined() -> None:
    large = batch(5, 1, bytes(3 * CARRY_BYTES_MAX))
    log = batch(0, 5, b"before") + large + batch(6, 1, b"after")
    sizes = [2 * CARRY_BYTES_MAX, CARRY_BYTES_MAX // 2]
    found = runs_of(log, sizes)
    assert [run.first_offset for run, _ in found] == [0, 5, 6]
    assert b"".join(data for _, data in found) == log
    assert found[1][1] == large


@pytest.mark.parametrize("size", [-1, 0, HEADER_SIZE - 1])
def test_a_batch_shorter_than_its_header_is_damage(size: int) -> None:
    good = batch(0, 1, b"good")
    bad = bytearray(batch(1, 1, b"bad"))
    bad[8:12] = (size - LOG_OVERHEAD).to_bytes(4, "big", signed=True)
    with pytest.raises(DamagedDataError, match=f"a batch claims {size} bytes") as error:
        runs_of(good + bytes(bad), position=100)
    assert (error.value.key, error.value.log_position) == (KEY, 100 + len(good))


def test_a_batch_longer_than_what_is_left_is_damage() -> None:
    """Its first bytes already tell: nothing is taken for a claim."""
    bad = bytearray(batch(0, 1, b"bad"))
    bad[8:12] = (1 << 30).to_bytes(4, "big")
    with pytest.raises(DamagedDataError, match=f"{len(bad)} are left"):
        runs_of(bytes(bad), [20])


def test_what_comes_before_damage_is_given() -> None:
    good = batch(0, 1, b"good")
    for sizes in ([], [len(good)]):
        found = batch_runs(Memory(good + bytes(100), sizes), KEY, 0, len(good) + 100)
        assert next(found).next_offset == 1
        with pytest.raises(DamagedDataError, match="a batch claims 12 bytes"):
            next(found)


def test_a_log_that_ends_within_a_batch_is_damage() -> None:
    whole = batch(0, 1, b"whole")
    for left, problem in ((5, "ends within a batch"), (30, "a batch claims")):
        found = batch_runs(Memory(whole + whole[:left], []), KEY, 0, len(whole) + left)
        assert next(found).next_offset == 1
        with pytest.raises(DamagedDataError, match=problem):
            next(found)


def test_a_batch_has_a_largest_size() -> None:
    bad = bytearray(batch(0, 1, b"bad"))
    bad[8:12] = (BATCH_BYTES_MAX + 1).to_bytes(4, "big")
    stream = Memory(bytes(bad), [])
    with pytest.raises(ReadError, match=f"more than {BATCH_BYTES_MAX}"):
        list(batch_runs(stream, KEY, 0, 2 * BATCH_BYTES_MAX))


# -- without sums of chunks -----------------------------------------------------------------------

BOUNDS = OffsetBounds(100, 130)


def three() -> list[bytearray]:
    return [bytearray(batch(100 + 10 * number, 10, b"of ten records")) for number in range(3)]


def test_batches_are_compared_with_their_own_sums() -> None:
    batches = three()
    batches[1][-1] ^= 1
    log = b"".join(batches)
    assert len(runs_of(log)[0][1]) == len(log)
    with pytest.raises(DamagedDataError, match="a batch fails its CRC") as error:
        runs_of(log, bounds=BOUNDS)
    assert error.value.log_position == len(batches[0])


@pytest.mark.parametrize("offset", [95, 105, 121, 1 << 40, -1])
def test_offsets_that_no_sum_covers_must_fit(offset: int) -> None:
    batches = three()
    batches[1][:8] = offset.to_bytes(8, "big", signed=True)
    with pytest.raises(DamagedDataError, match="may be"):
        runs_of(b"".join(batches), bounds=BOUNDS)


@pytest.mark.parametrize("sizes", [[], [60], [100, 100], [10] * 40])
def test_of_two_batches_that_overlap_neither_is_given(sizes: list[int]) -> None:
    """The first may lie about where it begins as well as the second."""
    batches = three()
    batches[1][:8] = (112).to_bytes(8, "big")
    log = b"".join(batches)
    found = batch_runs(Memory(log, sizes), KEY, 0, len(log), BOUNDS)
    run = next(found)
    assert (run.first_offset, run.next_offset) == (100, 110)
    with pytest.raises(DamagedBatchError, match="may be") as error:
        next(found)
    assert error.value.log_position == len(batches[0])


def test_a_magic_that_no_sum_covers_must_fit() -> None:
    batches = three()
    batches[2][16] = 1
    with pytest.raises(DamagedDataError, match="has magic 1"):
        runs_of(b"".join(batches), bounds=BOUNDS)


def test_offsets_may_have_gaps() -> None:
    """Of compaction, and of markers."""
    batches = three()
    assert len(runs_of(b"".join((batches[0], batches[2])), bounds=BOUNDS)[0][1]) > 0
