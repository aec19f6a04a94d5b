"""Names of data files, and what a commit keeps of them."""

import json
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from pipeline.lake.files.data_file import (
    BucketNames,
    DataFile,
    FileNames,
    NamedBucket,
    bucket_of,
    data_file_from_json,
    range_of,
)

TOPIC_ID = UUID("6f2b5a52-7b9b-4d6c-8d36-0b57f0d2a111")
NAMES = FileNames("data/", "orders", TOPIC_ID, 3, 120, 240, "0a1b2c3d")

names = st.builds(
    FileNames,
    st.sampled_from(["", "data/"]),
    st.from_regex(r"[a-zA-Z0-9._-]{1,249}", fullmatch=True),
    st.uuids(),
    st.integers(0, 100_000),
    st.integers(0, 2**62),
    st.integers(2**62, 2**63 - 1),
    st.from_regex(r"[0-9a-f]{8}", fullmatch=True),
)


def test_a_name_tells_what_is_inside() -> None:
    assert NAMES.key((("timestamp_day", "2026-11-22"),), 2) == (
        "data/timestamp_day=2026-11-22/part-orders-6f2b5a52-3-00000000000000000120"
        "-00000000000000000240-0a1b2c3d-002.parquet"
    )


@given(names, st.integers(0, 999))
def test_a_name_is_read_again(some: FileNames, number: int) -> None:
    """Whatever a topic is called, numbers and dashes included; and every file system takes it."""
    key = some.key((), number)
    found = range_of(key)
    told = (some.topic_id.hex[:8], some.partition, some.start, some.end, some.fingerprint)
    assert found == told
    name = key.rpartition("/")[2]
    assert len(name) + len("..") + 32 + len(".tmp") <= 255
    assert not name.startswith(("_", "."))


def test_other_files_have_no_range() -> None:
    for key in ("part-0001.parquet", "data/x.parquet", "part-00000-6f2b.snappy.parquet", ""):
        assert range_of(key) is None


def test_a_name_tells_the_bucket_and_no_range() -> None:
    """So that nobody takes a bucket's files for those of offsets, nor the other way round."""
    names = BucketNames("data/", "or-bucket-00001", TOPIC_ID, 7, 12, "0a1b2c3d")
    key = names.key((), 3)
    assert key == (
        "data/part-or-bucket-00001-6f2b5a52-bucket-00007-00000000000000000012-0a1b2c3d-00003.parquet"
    )
    assert bucket_of(key) == NamedBucket("6f2b5a52", 7, 12, "0a1b2c3d", 3)
    assert range_of(key) is None
    assert bucket_of(NAMES.key((), 2)) is None


def test_a_file_goes_through_json() -> None:
    file = DataFile("k", 10, 2, 0, 5, 7, -1000, 99, (("timestamp_day", "2026-11-22"),))
    assert data_file_from_json(json.loads(json.dumps(file.as_json()))) == file
