"""What every object store does, whichever it is: one list of checks.

Each check has a folder of keys to itself, so that all can run in one bucket of a real server.
`tests/contract/test_object_store.py` runs them on what is always there, `tests/interop/
test_s3_servers.py` on real S3 servers.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import pytest

from tiered.errors import ObjectNotFoundError, RemoteStorageError, StoreUnavailableError
from tiered.object_store.base import Buffer, ObjectInfo, ObjectStore, PendingUpload

MIB = 1024 * 1024

Check = Callable[[ObjectStore, str], Awaitable[None]]


async def stream(*parts: Buffer) -> AsyncIterator[Buffer]:
    for part in parts:
        yield part


async def read(store: ObjectStore, key: str, position: int, length: int) -> bytes:
    buffer = bytearray(length + 2)
    buffer[-2:] = b"##"
    await store.get_range(key, position, length, memoryview(buffer))
    assert buffer[-2:] == b"##"
    return bytes(buffer[:length])


async def list_all(store: ObjectStore, prefix: str, limit: int = 1000) -> Sequence[ObjectInfo]:
    objects: list[ObjectInfo] = []
    continuation = None
    while True:
        page = await store.list(prefix, continuation=continuation, limit=limit)
        assert len(page.objects) <= limit
        objects += page.objects
        continuation = page.continuation
        if continuation is None:
            return objects


async def what_is_put_is_got(store: ObjectStore, base: str) -> None:
    key = f"{base}/topic-id/0/00000000000000000000-a_b.log"
    for data in (b"hello", bytearray(b"replaced"), memoryview(b"xviewx")[1:5], b""):
        await store.put(key, data)
        assert await store.get(key, max_bytes=8) == bytes(data)
    assert [info.key for info in await list_all(store, base + "/")] == [key]


async def a_missing_object_is_told_apart(store: ObjectStore, base: str) -> None:
    key = f"{base}/none"
    with pytest.raises(ObjectNotFoundError) as caught:
        await store.get(key, max_bytes=10)
    assert caught.value.key == key
    with pytest.raises(ObjectNotFoundError):
        await read(store, key, 0, 1)
    assert await store.head(key) is None
    await store.delete([key])
    await store.put(f"{base}/folder/name", b"1")
    assert await store.head(f"{base}/folder") is None
    with pytest.raises(ObjectNotFoundError):
        await store.get(f"{base}/folder", max_bytes=10)
    with pytest.raises(ObjectNotFoundError):
        await read(store, f"{base}/folder", 0, 1)
    await store.delete([f"{base}/folder", f"{base}/folder/name/below"])
    assert await store.get(f"{base}/folder/name", max_bytes=10) == b"1"


async def get_refuses_what_is_too_large(store: ObjectStore, base: str) -> None:
    await store.put(f"{base}/a", b"12345")
    assert await store.get(f"{base}/a", max_bytes=5) == b"12345"
    with pytest.raises(RemoteStorageError, match=r"larger|more than"):
        await store.get(f"{base}/a", max_bytes=4)


async def ranges_are_read_exactly(store: ObjectStore, base: str) -> None:
    data = bytes(range(256)) * 40
    await store.put(f"{base}/a", data)
    for position, length in ((0, 1), (0, len(data)), (255, 2), (len(data) - 1, 1), (1000, 5000)):
        assert (
            await read(store, f"{base}/a", position, length) == data[position : position + length]
        )


async def an_empty_range_asks_nothing_of_the_store(store: ObjectStore, base: str) -> None:
    await store.put(f"{base}/a", b"1")
    assert await read(store, f"{base}/a", 0, 0) == b""


async def a_range_beyond_the_end_is_an_error(store: ObjectStore, base: str) -> None:
    await store.put(f"{base}/a", b"12345")
    for position, length in ((0, 6), (3, 3), (5, 1), (100, 1)):
        with pytest.raises(StoreUnavailableError):
            await read(store, f"{base}/a", position, length)


async def a_stream_is_one_object(store: ObjectStore, base: str) -> None:
    await store.put_stream(f"{base}/a", stream(b"one", bytearray(b"two"), b"", memoryview(b"3")), 7)
    assert await store.get(f"{base}/a", max_bytes=100) == b"onetwo3"
    await store.put_stream(f"{base}/empty", stream(), 0)
    assert await store.get(f"{base}/empty", max_bytes=100) == b""


async def a_long_stream_may_reuse_its_memory(store: ObjectStore, base: str) -> None:
    """11 MiB in odd parts from one buffer, which is overwritten as soon as more is asked for."""
    size = 11 * MIB
    part = bytearray(777_777)

    async def parts() -> AsyncIterator[Buffer]:
        position = 0
        number = 0
        while position < size:
            length = min(len(part), size - position)
            number += 1
            part[:] = bytes([number]) * len(part)
            yield memoryview(part)[:length]
            part[:] = b"\xff" * len(part)
            position += length

    await store.put_stream(f"{base}/a", parts(), size)
    info = await store.head(f"{base}/a")
    assert info is not None
    assert info.size == size
    for at in (0, 777_776, 8 * MIB - 1, 10 * MIB):
        first, second = await read(store, f"{base}/a", at, 2)
        assert (first, second) == (at // 777_777 + 1, (at + 1) // 777_777 + 1)
    assert await store.list_uploads(base + "/") == []


async def a_stream_of_the_wrong_size_stores_nothing(store: ObjectStore, base: str) -> None:
    for parts, size in (((b"12",), 3), ((b"12", b"34"), 3), ((b"1",), 0)):
        with pytest.raises(ValueError, match="promised"):
            await store.put_stream(f"{base}/a", stream(*parts), size)
    long = bytes(9 * MIB)
    for size in (9 * MIB - 1, 9 * MIB + 1, 20 * MIB):
        with pytest.raises(ValueError, match="promised"):
            await store.put_stream(f"{base}/a", stream(long), size)
    assert await list_all(store, base + "/") == []
    assert await store.list_uploads(base + "/") == []


async def a_stream_that_fails_stores_nothing(store: ObjectStore, base: str) -> None:
    class BrokenSourceError(Exception):
        pass

    async def parts() -> AsyncIterator[Buffer]:
        yield bytes(9 * MIB)
        raise BrokenSourceError

    with pytest.raises(BrokenSourceError):
        await store.put_stream(f"{base}/a", parts(), 20 * MIB)
    assert await list_all(store, base + "/") == []
    assert await store.list_uploads(base + "/") == []


async def a_cancelled_stream_stores_nothing(store: ObjectStore, base: str) -> None:
    reached = asyncio.Event()

    async def parts() -> AsyncIterator[Buffer]:
        yield bytes(9 * MIB)
        reached.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(store.put_stream(f"{base}/a", parts(), 20 * MIB))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await list_all(store, base + "/") == []
    assert await store.list_uploads(base + "/") == []


async def head_tells_size_and_time(store: ObjectStore, base: str) -> None:
    await store.put(f"{base}/a", b"12345")
    info = await store.head(f"{base}/a")
    listed = (await store.list(f"{base}/")).objects[0]
    assert info is not None
    assert info[:2] == listed[:2] == (f"{base}/a", 5)
    # S3's header has seconds, its listing milliseconds.
    assert abs(info.modified_ms - listed.modified_ms) <= 1000


async def delete_removes_many_and_leaves_others(store: ObjectStore, base: str) -> None:
    keys = [f"{base}/t/{number % 3}/{number:05}" for number in range(30)]
    for key in keys:
        await store.put(key, b"x")
    await store.delete([*keys[:20], f"{base}/missing"])
    assert [info.key for info in await list_all(store, base + "/")] == sorted(keys[20:])
    await store.delete(keys)
    await store.delete([])
    assert await list_all(store, base + "/") == []
    # The folders are gone, and can come back.
    await store.put(keys[0], b"again")
    assert await store.get(keys[0], max_bytes=5) == b"again"


ORDER = ("a", "a-b/c", "a.b", "a0", "ab/c", "ab/d/e", "ab0", "b/a", "b/b", "b.", "é", "zz")


async def listing_is_in_key_order_page_by_page(store: ObjectStore, base: str) -> None:
    """The order is of UTF-8 bytes, where `-` and `.` come before `/`."""
    for name in reversed(ORDER):
        await store.put(f"{base}/{name}", name.encode())
    expected = sorted(f"{base}/{name}" for name in ORDER)
    for limit in (1, 2, 3, 5, 1000):
        listed = await list_all(store, base + "/", limit)
        assert [info.key for info in listed] == expected
        assert [info.size for info in listed] == [
            len(info.key.removeprefix(f"{base}/").encode()) for info in listed
        ]


async def a_prefix_may_end_inside_a_name(store: ObjectStore, base: str) -> None:
    for name in ORDER:
        await store.put(f"{base}/{name}", b"")
    for prefix in ("a", "a-", "ab", "ab/", "ab/d", "b/", "b", "zz", "zzz", "none/at/all", "é"):
        listed = await list_all(store, f"{base}/{prefix}", 2)
        names = [info.key.removeprefix(f"{base}/") for info in listed]
        assert names == sorted(name for name in ORDER if name.startswith(prefix))


async def a_listing_goes_on_where_its_last_key_was_removed(store: ObjectStore, base: str) -> None:
    """As when a scrubber deletes page by page."""
    keys = [f"{base}/{number:02}/x" for number in range(10)]
    for key in keys:
        await store.put(key, b"")
    seen: list[str] = []
    continuation = None
    while True:
        page = await store.list(f"{base}/", continuation=continuation, limit=3)
        seen += [info.key for info in page.objects]
        await store.delete([info.key for info in page.objects])
        continuation = page.continuation
        if continuation is None:
            break
    assert seen == keys


async def list_folders(
    store: ObjectStore, prefix: str, limit: int = 1000, after: str = ""
) -> tuple[Sequence[str], Sequence[str]]:
    objects: list[str] = []
    folders: list[str] = []
    continuation = None
    while True:
        page = await store.list(
            prefix, after=after, folders=True, continuation=continuation, limit=limit
        )
        assert len(page.objects) + len(page.folders) <= limit
        objects += [info.key for info in page.objects]
        folders += page.folders
        continuation = page.continuation
        if continuation is None:
            return objects, folders


async def a_listing_begins_after_a_key(store: ObjectStore, base: str) -> None:
    """Which need not exist, may end inside a name, and may be that of a folder."""
    for name in ORDER:
        await store.put(f"{base}/{name}", b"")
    for after in ("", "Z", "a", "a-", "a-b/c", "a.b", "aa", "ab/", "ab/c", "ab/d", "b/", "zz", "é"):
        for limit in (2, 1000):
            names: list[str] = []
            continuation = None
            while True:
                page = await store.list(
                    f"{base}/", after=f"{base}/{after}", continuation=continuation, limit=limit
                )
                names += [info.key.removeprefix(f"{base}/") for info in page.objects]
                continuation = page.continuation
                if continuation is None:
                    break
            assert names == sorted(name for name in ORDER if name > after), (after, limit)
            assert not page.folders


async def what_is_after_all_or_before_all_of_a_prefix(store: ObjectStore, base: str) -> None:
    for name in ("k/1", "k/2", "m"):
        await store.put(f"{base}/{name}", b"")
    for after, names in (("", 2), ("a", 2), ("k/", 2), ("k/1", 1), ("k/2", 0), ("m", 0), ("z", 0)):
        page = await store.list(f"{base}/k/", after=f"{base}/{after}")
        assert len(page.objects) == names, after
        assert page.continuation is None


async def folders_are_told_once_and_in_order(store: ObjectStore, base: str) -> None:
    await _list_all_folders(store, base, (2, 3, 1000))


async def folders_are_told_on_pages_of_one(store: ObjectStore, base: str) -> None:
    await _list_all_folders(store, base, (1,))


async def _list_all_folders(store: ObjectStore, base: str, limits: Sequence[int]) -> None:
    for name in ORDER:
        await store.put(f"{base}/{name}", b"")
    for prefix, objects, folders in (
        ("", ["a", "a.b", "a0", "ab0", "b.", "zz", "é"], ["a-b/", "ab/", "b/"]),
        ("a", ["a", "a.b", "a0", "ab0"], ["a-b/", "ab/"]),
        ("ab", ["ab0"], ["ab/"]),
        ("ab/", ["ab/c"], ["ab/d/"]),
        ("ab/d", [], ["ab/d/"]),
        ("ab/d/", ["ab/d/e"], []),
        ("none/", [], []),
    ):
        for limit in limits:
            listed = await list_folders(store, f"{base}/{prefix}", limit)
            assert listed == (
                [f"{base}/{name}" for name in objects],
                [f"{base}/{name}" for name in folders],
            ), (prefix, limit)


async def folders_are_told_after_a_key(store: ObjectStore, base: str) -> None:
    """A folder in which that key lies is not told, so a folder's own name goes on behind it."""
    for name in ORDER:
        await store.put(f"{base}/{name}", b"")
    for after, objects, folders in (
        ("a", ["a.b", "a0", "ab0", "b.", "zz", "é"], ["a-b/", "ab/", "b/"]),
        ("a-b/", ["a.b", "a0", "ab0", "b.", "zz", "é"], ["ab/", "b/"]),
        ("ab/d/", ["ab0", "b.", "zz", "é"], ["b/"]),
        ("b/a", ["zz", "é"], []),
        ("zz", ["é"], []),
        ("é", [], []),
    ):
        for limit in (1, 2, 1000):
            listed = await list_folders(store, f"{base}/", limit, f"{base}/{after}")
            assert listed == (
                [f"{base}/{name}" for name in objects],
                [f"{base}/{name}" for name in folders],
            ), (after, limit)


async def an_emptied_folder_is_not_told(store: ObjectStore, base: str) -> None:
    for name in ("a/b/c", "d/e"):
        await store.put(f"{base}/{name}", b"")
    await store.delete([f"{base}/a/b/c"])
    assert await list_folders(store, f"{base}/") == ([], [f"{base}/d/"])


async def long_names_are_folders_too(store: ObjectStore, base: str) -> None:
    """Kafka's longest topic and its id are more than a file system's name."""
    long = "t" * 249 + "-" + "i" * 22
    await store.put(f"{base}/{long}/0/x", b"")
    await store.put(f"{base}/{long}/1/x", b"")
    assert await list_folders(store, f"{base}/") == ([], [f"{base}/{long}/"])
    assert await list_folders(store, f"{base}/{long}/", 1) == (
        [],
        [f"{base}/{long}/0/", f"{base}/{long}/1/"],
    )


async def unusable_keys_are_refused(store: ObjectStore, base: str) -> None:
    for key in ("", "/a", "a/", "a//b", "../a", "a/../../b", "a/./b", "a\0b", "a" * 1025):
        for call in (
            lambda key=key: store.put(key, b""),
            lambda key=key: store.put_stream(key, stream(b""), 0),
            lambda key=key: store.get(key, max_bytes=1),
            lambda key=key: read(store, key, 0, 1),
            lambda key=key: store.head(key),
            lambda key=key: store.delete([key]),
        ):
            with pytest.raises(RemoteStorageError, match="unusable key"):
                await call()
    with pytest.raises(RemoteStorageError, match="unusable key"):
        await store.list("../")
    with pytest.raises(RemoteStorageError, match="unusable key"):
        await store.list("", after="../a")
    with pytest.raises(RemoteStorageError, match="unusable key"):
        await store.list_uploads("a/../")


async def aborting_an_unknown_upload_is_fine(store: ObjectStore, base: str) -> None:
    await store.put(f"{base}/a", b"kept")
    await store.abort_upload(PendingUpload(f"{base}/a", "0" * 32, 0))
    await store.abort_upload(PendingUpload(f"{base}/none", "0" * 32, 0))
    assert await store.get(f"{base}/a", max_bytes=10) == b"kept"


async def many_calls_at_once(store: ObjectStore, base: str) -> None:
    """Puts and deletes in the same folders do not hurt each other."""

    async def live(number: int) -> None:
        for turn in range(4):
            key = f"{base}/{number % 3}/{turn}/{number}"
            await store.put(key, key.encode())
            assert await store.get(key, max_bytes=200) == key.encode()
            await store.delete([key])

    await asyncio.gather(*(live(number) for number in range(12)))
    assert await list_all(store, base + "/") == []


async def calls_are_counted(store: ObjectStore, base: str) -> None:
    before = store.statistics.as_dict()["calls"]
    await store.put(f"{base}/a", b"12345")
    await read(store, f"{base}/a", 1, 3)
    with pytest.raises(ObjectNotFoundError):
        await store.get(f"{base}/b", max_bytes=9)
    after = store.statistics.as_dict()["calls"]

    def risen(call: str, field: str) -> int:
        return int(after[call][field] - before[call][field])

    assert (risen("put", "calls"), risen("put", "bytes")) == (1, 5)
    assert (risen("get_range", "calls"), risen("get_range", "bytes")) == (1, 3)
    assert risen("get", "calls") == 1
    assert after["get"]["errors"]["not_found"] == before["get"]["errors"]["not_found"] + 1


CHECKS: Sequence[Check] = (
    what_is_put_is_got,
    a_missing_object_is_told_apart,
    get_refuses_what_is_too_large,
    ranges_are_read_exactly,
    an_empty_range_asks_nothing_of_the_store,
    a_range_beyond_the_end_is_an_error,
    a_stream_is_one_object,
    a_long_stream_may_reuse_its_memory,
    a_stream_of_the_wrong_size_stores_nothing,
    a_stream_that_fails_stores_nothing,
    a_cancelled_stream_stores_nothing,
    head_tells_size_and_time,
    delete_removes_many_and_leaves_others,
    listing_is_in_key_order_page_by_page,
    a_prefix_may_end_inside_a_name,
    a_listing_goes_on_where_its_last_key_was_removed,
    a_listing_begins_after_a_key,
    what_is_after_all_or_before_all_of_a_prefix,
    folders_are_told_once_and_in_order,
    folders_are_told_on_pages_of_one,
    folders_are_told_after_a_key,
    an_emptied_folder_is_not_told,
    long_names_are_folders_too,
    unusable_keys_are_refused,
    aborting_an_unknown_upload_is_fine,
    many_calls_at_once,
    calls_are_counted,
)
