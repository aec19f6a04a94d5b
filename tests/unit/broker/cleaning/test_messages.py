"""What crosses between broker and process comes out as it went in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.cleaning.messages import (
    decode,
    encode,
    failure_from_json,
    failure_to_json,
    job_from_json,
    job_to_json,
)
from protocol.errors import DecodeError
from storage.cleaner.cleaning import (
    CleaningAbortedError,
    CleaningFailedError,
    CleaningJob,
    SegmentSize,
)
from storage.errors import CorruptFileError, DiskError

numbers = st.integers(0, 2**63 - 1)


@given(
    segments=st.lists(st.tuples(numbers, numbers), max_size=5),
    producers=st.dictionaries(numbers, st.tuples(st.integers(-1, 2**63 - 1), numbers), max_size=5),
    directory=st.text(max_size=10),
)
def test_a_job_comes_out_as_it_went_in(
    segments: list[tuple[int, int]], producers: dict[int, tuple[int, int]], directory: str
) -> None:
    job = CleaningJob(
        directory, tuple(SegmentSize(*one) for one in segments), 1, 2, 3, 4, 5, 6, 7, producers
    )
    line = encode({"do": job_to_json(job)})
    assert line.count(b"\n") == 1
    assert job_from_json(decode(line)["do"]) == job


@pytest.mark.parametrize(
    "error",
    [
        CleaningAbortedError("stop"),
        CorruptFileError("bad"),
        DecodeError("bad record"),
    ],
)
def test_an_error_is_the_one_a_thread_would_have_raised(error: Exception) -> None:
    back = failure_from_json(*decode(encode({"failed": failure_to_json(error)}))["failed"])
    assert type(back) is type(error)
    assert str(back) == str(error)


def test_a_disk_error_keeps_path_and_number() -> None:
    """Whether the disk is full decides what the broker does."""
    back = failure_from_json(*failure_to_json(DiskError("cannot write", "/d/x", 28)))
    assert isinstance(back, DiskError)
    assert (back.path, back.errno) == ("/d/x", 28)


def test_any_other_error_is_the_process_s_own() -> None:
    assert type(failure_from_json(*failure_to_json(KeyError("bug")))) is CleaningFailedError
