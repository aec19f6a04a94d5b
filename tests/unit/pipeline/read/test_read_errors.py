import pickle
from uuid import UUID

import pytest

from pipeline.plan.piece import PartitionName
from pipeline.read.read_errors import (
    DamagedBatchError,
    DamagedDataError,
    LostOffsetsError,
    ReadError,
)

ERRORS = [
    DamagedDataError("a.log", 5, "chunk 1 fails its CRC", 10, 20),
    DamagedBatchError("a.log", 5, "no batch", 10, 20, 30),
    LostOffsetsError(PartitionName("t", UUID(int=1), 3), 5, 9, "gone"),
]


@pytest.mark.parametrize("error", ERRORS)
def test_errors_cross_from_workers_to_drivers(error: ReadError) -> None:
    same = pickle.loads(pickle.dumps(error))
    assert type(same) is type(error)
    assert str(same) == str(error)
    assert vars(same) == vars(error)


def test_what_they_say() -> None:
    assert str(ERRORS[0]) == (
        "a.log at byte 5: chunk 1 fails its CRC (failOnDataLoss=false goes on without it)"
    )
    assert "no batch (byte 10 of the segment's log)" in str(ERRORS[1])
    assert "t-3: offsets 5 to 8 are lost: gone" in str(ERRORS[2])
