import pytest

from pipeline.plan.tail import stable_end
from storage.errors import CorruptFileError
from storage.producers.entry import ProducerEntry
from tests.fakes.producer_snapshots import encode_snapshot


def snapshot(*first_offsets: int) -> bytes:
    return encode_snapshot(
        [ProducerEntry(number, 0, -1, 0, first) for number, first in enumerate(first_offsets)]
    )


@pytest.mark.parametrize(
    ("first_offsets", "stable"),
    [
        ((), 100),
        ((-1, -1), 100),
        ((-1, 70, 60), 60),
        ((0,), 10),
        ((5,), 10),
        ((100,), 100),
        ((130,), 100),
    ],
)
def test_it_is_the_least_first_offset_of_those_open(
    first_offsets: tuple[int, ...], stable: int
) -> None:
    """Within the log."""
    assert stable_end(snapshot(*first_offsets), 10, 100) == stable


def test_a_damaged_snapshot_is_refused() -> None:
    """Without it nobody knows where committed rows end."""
    with pytest.raises(CorruptFileError, match="fails its CRC"):
        stable_end(snapshot(5)[:-1] + b"\xff", 0, 100)
