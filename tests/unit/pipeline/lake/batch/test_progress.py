"""What a table's commits tell of its offsets."""

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.lake.batch.progress import Progress, decode_progress, encode_progress
from pipeline.lake.errors import ForeignTableError

TOPIC_ID = UUID("6f2b5a52-7b9b-4d6c-8d36-0b57f0d2a111")
SOME = Progress("job", "orders", TOPIC_ID, 3, {0: 120, 7: 0})

progresses = st.builds(
    Progress,
    st.text(max_size=20),
    st.text(max_size=20),
    st.uuids(),
    st.integers(0, 2**60),
    st.dictionaries(st.integers(0, 10_000), st.integers(0, 2**63 - 1), max_size=20),
)


@given(progresses)
def test_what_is_encoded_is_decoded(progress: Progress) -> None:
    assert decode_progress(encode_progress(progress)) == progress


def test_the_form_is_the_documented_one() -> None:
    """Tables outlive versions of the job."""
    assert json.loads(encode_progress(SOME)) == {
        "version": 1,
        "job": "job",
        "topic": "orders",
        "topicId": "6f2b5a52-7b9b-4d6c-8d36-0b57f0d2a111",
        "batch": 3,
        "offsets": {"0": 120, "7": 0},
    }


@given(st.text(max_size=30) | st.recursive(st.none() | st.integers(), st.lists).map(json.dumps))
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ForeignTableError):
        decode_progress(text)


def test_a_newer_version_is_refused_by_name() -> None:
    text = encode_progress(SOME).replace('"version": 1', '"version": 2')
    with pytest.raises(ForeignTableError, match="version 2"):
        decode_progress(text)


def test_offsets_below_0_are_refused() -> None:
    with pytest.raises(ForeignTableError):
        decode_progress(encode_progress(SOME).replace("120", "-120"))


def test_a_batch_advances_its_partitions_only() -> None:
    after = SOME.advanced({0: 130, 1: 5})
    assert after.offsets == {0: 130, 1: 5, 7: 0}
    assert after.batch == 4
