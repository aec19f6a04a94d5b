"""Arguments and results cross as they are."""

import inspect
import json
from typing import Any

import pytest

from tests.unit.tiered.worker.turns import FACTS, FILES, SEGMENT
from tiered.object_store.base import ObjectInfo, ObjectPage, PendingUpload
from tiered.tier import (
    ChunkResult,
    CopyResult,
    Fault,
    FoundChunk,
    FoundChunks,
    IndexesResult,
    SideFile,
    Tier,
)
from tiered.worker.calls import CALLS
from tiered.worker.frames import FRAME_SIZE_MAX, Kind, encode

PAGE = ObjectPage([ObjectInfo("a/é", 3, 5)], "next")

EXAMPLES: dict[str, tuple[tuple[Any, ...], list[Any]]] = {
    "copy_segment": (
        (SEGMENT, FILES, FACTS),
        [CopyResult(5, None), CopyResult(5, b"\x00\xff"), CopyResult(5, b"")],
    ),
    "fetch_indexes": ((SEGMENT, "/dir\udcff", "stem"), [IndexesResult(1, 2, 3, 4)]),
    "fetch_chunk": ((SEGMENT, "/m", 3, "/p"), [ChunkResult(1, 0xFFFFFFFF, 2)]),
    "refer_to_chunks": (
        (SEGMENT, "/m", [3, 4], "/dir\udcff"),
        [
            FoundChunks("", 0, 0, []),
            FoundChunks("/é", 9, 5, [FoundChunk(3, 1, 0xFFFFFFFF, 2)]),
        ],
    ),
    "fetch_side_file": ((SEGMENT, SideFile.PRODUCER_SNAPSHOT), [b"", b"\x00\xff" * 99]),
    "delete_segment": ((SEGMENT,), [None]),
    "is_complete": ((SEGMENT,), [True, False]),
    "verify_segment": ((SEGMENT,), [[], [Fault("k", -1, "p")]]),
    "list_objects": (("prefix", None), [PAGE, ObjectPage([], None)]),
    "delete_objects": ((["a", "b"],), [None]),
    "list_uploads": (("prefix",), [[], [PendingUpload("k", "id", 7)]]),
    "abort_upload": ((PendingUpload("k", "id", 7),), [None]),
    "put_object": (("k", b"\x00\xff"), [None]),
    "get_object": (("k",), [b"", b"\x00\xff"]),
}


def test_every_call_of_a_tier_can_cross() -> None:
    awaited = {
        name for name, member in vars(Tier).items() if inspect.iscoroutinefunction(member)
    } - {"close"}
    assert set(CALLS) == awaited == set(EXAMPLES)


@pytest.mark.parametrize("method", EXAMPLES)
def test_arguments_and_results(method: str) -> None:
    codec = CALLS[method]
    arguments, results = EXAMPLES[method]
    head, data = codec.encode(*arguments)
    decoded = codec.decode(json.loads(json.dumps(head)), data)
    assert decoded == arguments
    assert [type(one) for one in decoded] == [type(one) for one in arguments]
    for result in results:
        value, data = codec.encode_result(result)
        back = codec.decode_result(json.loads(json.dumps(value)), data)
        assert back == result
        assert type(back) is type(result)


def test_a_page_of_a_thousand_long_keys_crosses() -> None:
    """Keys of S3's greatest length, each character of which is six bytes of JSON."""
    page = ObjectPage([ObjectInfo("é" * 512 + str(i), 3, 5) for i in range(1000)], "next")
    value, data = CALLS["list_objects"].encode_result(page)
    assert len(data) > FRAME_SIZE_MAX
    assert len(list(encode(Kind.RESULT, 1, {"result": value}, data))) > 1
    assert CALLS["list_objects"].decode_result(value, data) == page


@pytest.mark.parametrize("method", EXAMPLES)
@pytest.mark.parametrize("arguments", [None, [], [None], [1, 2, 3, 4, 5, 6]])
def test_other_arguments_are_refused_or_left_to_the_call(method: str, arguments: Any) -> None:
    """Never anything but what a service answers with an error."""
    try:
        CALLS[method].decode(arguments, b"\xff")
    except (ValueError, KeyError, TypeError, IndexError):
        return
    assert method in {"list_objects", "list_uploads", "abort_upload", "put_object", "get_object"}
