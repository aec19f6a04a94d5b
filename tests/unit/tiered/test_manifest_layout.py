"""Two numbers out of a manifest, whatever the manifest is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import CorruptFileError
from tiered.manifest_layout import SegmentLayout, read_layout


def test_the_last_chunk_is_what_is_left() -> None:
    layout = read_layout(b'{"chunkIndex": {"originalChunkSize": 4, "originalFileSize": 10}}')
    assert layout == SegmentLayout(4, 10)
    assert layout.chunks == 3
    assert [layout.chunk_length(chunk) for chunk in range(3)] == [4, 4, 2]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"[]",
        b"{}",
        b'{"chunkIndex": 3}',
        b'{"chunkIndex": {"originalChunkSize": 0, "originalFileSize": 10}}',
        b'{"chunkIndex": {"originalChunkSize": 4, "originalFileSize": -1}}',
        b'{"chunkIndex": {"originalChunkSize": true, "originalFileSize": 10}}',
        b'{"chunkIndex": {"originalChunkSize": "4", "originalFileSize": 10}}',
        b"[" * 100_000,
    ],
)
def test_what_does_not_say_is_refused(data: bytes) -> None:
    with pytest.raises(CorruptFileError):
        read_layout(data)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["chunkIndex", "originalChunkSize", "originalFileSize"]), inner
        )
    ),
)


@given(_JSON)
def test_any_document_is_read_or_refused(document: object) -> None:
    try:
        layout = read_layout(json.dumps(document).encode())
    except CorruptFileError:
        return
    assert layout.chunk_bytes > 0
    assert layout.log_bytes > 0
