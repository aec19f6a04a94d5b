"""Large objects in parts: sizes, order, memory, what happens when something fails."""

import asyncio
import gc
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tiered.errors import StoreUnavailableError
from tiered.object_store.base import Buffer
from tiered.object_store.deadline import Deadline
from tiered.object_store.s3.errors import NoSuchUploadError
from tiered.object_store.s3.upload import (
    PART_BYTES_MIN,
    PARTS_MAX,
    MultipartUpload,
    crc32c_header,
    part_bytes_for,
)

PART = PART_BYTES_MIN


class Store:
    """The calls of one upload."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.parts: dict[int, bytes] = {}
        self.in_flight = 0
        self.in_flight_max = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.errors: dict[str, Exception] = {}
        self.completed: list[dict[str, Any]] = []
        self.arguments: dict[str, dict[str, Any]] = {}
        self.stored = False

    async def call(self, operation: str, key: str, arguments: dict[str, Any]) -> Any:
        assert key == "a/b"
        self.calls.append(operation)
        self.arguments[operation] = arguments
        if operation != "create_multipart_upload":
            assert arguments["UploadId"] == "id-1"
        if operation == "upload_part":
            self.in_flight += 1
            self.in_flight_max = max(self.in_flight_max, self.in_flight)
            try:
                await self.gate.wait()
            finally:
                self.in_flight -= 1
        if operation in self.errors:
            raise self.errors[operation]
        if operation == "create_multipart_upload":
            return {"UploadId": "id-1"}
        if operation == "upload_part":
            number = arguments["PartNumber"]
            # Later parts end first, as they may.
            await asyncio.sleep(0.01 / number)
            body = arguments["Body"]
            self.parts[number] = b"".join([bytes(piece) async for piece in body])
            assert len(body) == len(self.parts[number])
            return {"ETag": f"tag-{number}"}
        if operation == "complete_multipart_upload":
            self.completed = arguments["MultipartUpload"]["Parts"]
        return {}

    async def is_stored(self) -> bool:
        return self.stored

    def upload(self, size: int, **changes: Any) -> MultipartUpload:
        settings: dict[str, Any] = {
            "part_bytes": PART,
            "in_flight": 2,
            "with_crc32c": False,
            "storage_class": "STANDARD",
            **changes,
        }
        return MultipartUpload(self.call, "a/b", size, is_stored=self.is_stored, **settings)


async def source(size: int, step: int = 1_234_567) -> AsyncIterator[Buffer]:
    """Bytes that differ from part to part, from one memory that is used again."""
    memory = bytearray(step)
    for at in range(0, size, step):
        memory[:] = bytes([at // step % 251]) * step
        yield memoryview(memory)[: min(step, size - at)]


async def whole(size: int) -> bytes:
    return b"".join([bytes(part) async for part in source(size)])


async def run(upload: MultipartUpload, size: int) -> None:
    async with Deadline(60_000, "put_stream a/b") as deadline:
        await upload.run(source(size), deadline)


@pytest.mark.parametrize("size", [PART + 1, 3 * PART, 4 * PART - 1])
async def test_parts_are_put_together_in_order(size: int) -> None:
    store = Store()
    await run(store.upload(size), size)
    numbers = sorted(store.parts)
    assert numbers == list(range(1, -(-size // PART) + 1))
    assert b"".join(store.parts[number] for number in numbers) == await whole(size)
    assert store.completed == [{"PartNumber": n, "ETag": f"tag-{n}"} for n in numbers]
    assert "abort_multipart_upload" not in store.calls


@pytest.mark.parametrize("in_flight", [1, 3])
async def test_no_more_parts_in_flight_than_allowed(in_flight: int) -> None:
    store = Store()
    store.gate.clear()
    size = 6 * PART
    upload = store.upload(size, in_flight=in_flight)
    task = asyncio.create_task(run(upload, size))
    for _ in range(200):
        await asyncio.sleep(0)
    assert store.in_flight == in_flight
    store.gate.set()
    await task
    assert store.in_flight_max == in_flight
    # One more is being filled.
    assert len(upload._spare) <= in_flight + 1


async def test_checksums_are_told_with_each_part_and_at_the_end() -> None:
    store = Store()
    size = PART + 10
    await run(store.upload(size, with_crc32c=True, storage_class="GLACIER_IR"), size)
    assert store.arguments["create_multipart_upload"] == {
        "StorageClass": "GLACIER_IR",
        "ChecksumAlgorithm": "CRC32C",
    }
    assert [part["ChecksumCRC32C"] for part in store.completed] == [
        crc32c_header(store.parts[1]),
        crc32c_header(store.parts[2]),
    ]


@pytest.mark.parametrize("operation", ["upload_part", "complete_multipart_upload"])
async def test_a_failure_aborts_once_and_is_told(operation: str) -> None:
    store = Store()
    store.errors[operation] = StoreUnavailableError("down")
    with pytest.raises(StoreUnavailableError, match="down"):
        await run(store.upload(3 * PART), 3 * PART)
    assert store.calls.count("abort_multipart_upload") == 1
    assert store.in_flight == 0


async def test_parts_that_fail_together_leave_no_traceback() -> None:
    """One of the errors is raised; asyncio logs those of the others unless they are looked at."""
    logged: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: logged.append(context))
    store = Store()
    store.gate.clear()
    store.errors["upload_part"] = StoreUnavailableError("down")
    task = asyncio.create_task(run(store.upload(3 * PART), 3 * PART))
    for _ in range(200):
        await asyncio.sleep(0)
    assert store.in_flight == 2
    store.gate.set()
    with pytest.raises(StoreUnavailableError, match="down"):
        await task
    # The error's frames hold the parts' tasks.
    del task
    store.errors.clear()
    await asyncio.sleep(0)
    gc.collect()
    assert logged == []


async def test_an_abort_that_fails_does_not_hide_the_failure() -> None:
    store = Store()
    store.errors["upload_part"] = StoreUnavailableError("first")
    store.errors["abort_multipart_upload"] = StoreUnavailableError("second")
    with pytest.raises(StoreUnavailableError, match="first"):
        await run(store.upload(3 * PART), 3 * PART)


async def test_an_upload_that_did_not_begin_is_not_aborted() -> None:
    store = Store()
    store.errors["create_multipart_upload"] = StoreUnavailableError("down")
    with pytest.raises(StoreUnavailableError):
        await run(store.upload(3 * PART), 3 * PART)
    assert store.calls == ["create_multipart_upload"]


async def test_cancelling_stops_the_parts_and_aborts() -> None:
    store = Store()
    store.gate.clear()
    task = asyncio.create_task(run(store.upload(6 * PART), 6 * PART))
    for _ in range(200):
        await asyncio.sleep(0)
    assert store.in_flight == 2
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert store.in_flight == 0
    assert store.calls[-1] == "abort_multipart_upload"


async def test_no_such_upload_at_the_end_is_well_if_the_object_is_there() -> None:
    """The answer to the first attempt was lost."""
    store = Store()
    store.errors["complete_multipart_upload"] = NoSuchUploadError("gone")
    store.stored = True
    await run(store.upload(2 * PART), 2 * PART)
    assert "abort_multipart_upload" not in store.calls
    store.stored = False
    with pytest.raises(StoreUnavailableError, match="aborted"):
        await run(store.upload(2 * PART), 2 * PART)


def test_parts_are_neither_too_small_nor_too_many() -> None:
    assert part_bytes_for(1, 8 << 20) == 8 << 20
    assert part_bytes_for(1, 1) == PART_BYTES_MIN
    huge = 5 << 40
    assert part_bytes_for(huge, 8 << 20) * PARTS_MAX >= huge


def test_the_checksum_is_that_of_the_standard() -> None:
    """RFC 3720, B.4: CRC-32C of 32 zero bytes is 8a9136aa."""
    assert crc32c_header(bytes(32)) == "ipE2qg=="
