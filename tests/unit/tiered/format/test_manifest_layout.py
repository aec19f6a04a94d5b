"""Two numbers out of a manifest, whatever the manifest is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.errors import CorruptFileError
from tiered.format.manifest_layout import (
    ELEMENTS_MAX,
    FileSum,
    SegmentLayout,
    read_layout,
    read_sums,
    seal,
)


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


def _sealed(files: str) -> bytes:
    return seal(f'{{"remoteLogSegmentMetadata":{{"varve":{{"sideFiles":{files},'.encode())


def test_sums_of_side_files() -> None:
    manifest = _sealed('{"offset":{"size":8,"crc32c":7,"storedCrc32c":9}}')
    assert read_sums(manifest) == {"offset": FileSum(8, 7)}


@pytest.mark.parametrize("files", ["3", "[]", '{"offset":3}', '{"offset":{"size":8}}', "", "["])
def test_sums_that_are_none_are_refused(files: str) -> None:
    with pytest.raises(CorruptFileError, match="no sums"):
        read_sums(_sealed(files))


def test_sums_of_a_manifest_that_was_changed_are_not_believed() -> None:
    manifest = _sealed('{"offset":{"size":8,"crc32c":7}}')
    for at in range(len(manifest)):
        changed = bytearray(manifest)
        changed[at] ^= 1
        with pytest.raises(CorruptFileError):
            read_sums(bytes(changed))
    with pytest.raises(CorruptFileError, match="CRC"):
        read_sums(b"{}")


@pytest.mark.parametrize("element", ["[],", "{},", "[[", "0,"])
def test_a_manifest_of_countless_elements_is_not_parsed(element: str) -> None:
    many = element * (ELEMENTS_MAX + 1)
    index = '"chunkIndex":{"originalChunkSize":4,"originalFileSize":10}'
    with pytest.raises(CorruptFileError, match="too many elements"):
        read_layout(f'{{{index},"more":[{many}0]}}'.encode())
    with pytest.raises(CorruptFileError, match="too many elements"):
        read_sums(_sealed(f'{{}}}},"more":[{many}0],"rest":{{"a":{{}}'))
