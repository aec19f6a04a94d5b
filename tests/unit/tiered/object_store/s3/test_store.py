"""S3 whose answers are late, short, wrong, lost or refusals."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from storage.environment.clock import SystemClock
from storage.environment.randomness import SeededRandomness
from tests.fakes.s3.faulty_server import S3Fault, S3Faults
from tests.fakes.s3.moto_server import make_bucket, s3_settings
from tiered.errors import (
    ObjectNotFoundError,
    RemoteStorageError,
    StoreDeniedError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from tiered.object_store.base import Buffer, PendingUpload
from tiered.object_store.s3.credentials import FixedCredentials
from tiered.object_store.s3.store import S3ObjectStore

MIB = 1024 * 1024
DATA = bytes(range(256)) * 400
LARGE = 6 * MIB
UPLOAD_ID = "unknown-upload-id"

SOON: dict[str, Any] = {"read_timeout_ms": 150, "call_timeout_ms": 1_000}

IN_TIME_S = 30.0
"""Far above all deadlines below, below those of a library left to itself: a minute, and again."""


async def no_sleep(_: float) -> None:
    await asyncio.sleep(0)


@asynccontextmanager
async def faulty(
    moto_url: str, bucket: str = "faults", **changes: Any
) -> AsyncIterator[tuple[S3Faults, S3ObjectStore]]:
    """A store behind a proxy; the object "a" is there."""
    fast_reads = changes.pop("fast_reads", True)
    await make_bucket(s3_settings(moto_url, bucket))
    # By a patient store: the deadlines of some here are shorter than a healthy call may take.
    patient = s3_settings(
        moto_url,
        bucket,
        **{key: value for key, value in changes.items() if not key.endswith("_timeout_ms")},
    )
    store = S3ObjectStore(
        patient,
        SystemClock(),
        SeededRandomness(1),
        credentials=FixedCredentials(patient.access_key_id, patient.secret_access_key),
    )
    try:
        await store.put("a", DATA)
    finally:
        await store.close()
    async with S3Faults(moto_url) as proxy:
        settings = s3_settings(
            proxy.url,
            bucket,
            **{
                "read_timeout_ms": 5_000,
                "call_timeout_ms": 20_000,
                "part_bytes": 5 * MIB,
                "attempts": 2,
                **changes,
            },
        )
        store = S3ObjectStore(
            settings,
            SystemClock(),
            SeededRandomness(1),
            credentials=FixedCredentials(settings.access_key_id, settings.secret_access_key),
            sleep=no_sleep,
            fast_reads=fast_reads,
        )
        try:
            # Importing the library takes longer than some of the deadlines here.
            await store._calls._open()
            yield proxy, store
        finally:
            await store.close()


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what another connection does; half a minute at most."""
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.005)


async def large() -> AsyncIterator[Buffer]:
    for _ in range(LARGE // MIB):
        yield bytes(MIB)


async def read_range(store: S3ObjectStore) -> bytes:
    buffer = bytearray(50_000)
    await store.get_range("a", 1_000, 50_000, memoryview(buffer))
    return bytes(buffer)


CALLS: dict[str, Callable[[S3ObjectStore], Awaitable[Any]]] = {
    "put": lambda store: store.put("b", DATA),
    "put_stream": lambda store: store.put_stream("large", large(), LARGE),
    "get": lambda store: store.get("a", max_bytes=MIB),
    "get_range": read_range,
    "head": lambda store: store.head("a"),
    "delete": lambda store: store.delete(["c", "d"]),
    "list": lambda store: store.list(""),
    "list_uploads": lambda store: store.list_uploads(""),
    "abort_upload": lambda store: store.abort_upload(PendingUpload("a", UPLOAD_ID, 0)),
}


async def expect_all(
    store: S3ObjectStore, kind: type[RemoteStorageError], within_s: float = IN_TIME_S
) -> None:
    """Every call fails in that way, in time, and is counted."""
    for name, call in CALLS.items():
        begin = time.perf_counter()
        with pytest.raises(RemoteStorageError) as caught:
            await call(store)
        assert type(caught.value) is kind, (name, caught.value)
        assert time.perf_counter() - begin < within_s, name
        assert sum(store.statistics.by_call[name].errors.values()) == 1


@pytest.mark.parametrize("fault", [S3Fault.HANG, S3Fault.DEAF])
async def test_a_store_that_never_answers_ends_in_a_time_out(moto_url: str, fault: S3Fault) -> None:
    async with faulty(moto_url, **{**SOON, "call_timeout_ms": 3_000}) as (proxy, store):
        proxy.fail(fault)
        await expect_all(store, StoreTimeoutError)
        assert store.statistics.by_call["get"].errors["timeout"] == 1
        assert store.statistics.by_call["get"].retries == 1


async def test_a_store_that_is_not_there_is_unavailable(moto_url: str) -> None:
    async with faulty(moto_url) as (proxy, store):
        assert proxy._server is not None
        proxy._server.close()
        for task in proxy._tasks:
            task.cancel()
        await expect_all(store, StoreUnavailableError)


@pytest.mark.parametrize(
    ("status", "code"), [(503, "SlowDown"), (500, "InternalError"), (429, "TooManyRequests")]
)
async def test_a_busy_store_is_unavailable(moto_url: str, status: int, code: str) -> None:
    async with faulty(moto_url) as (proxy, store):
        proxy.fail(S3Fault.STATUS, status=status, code=code)
        await expect_all(store, StoreUnavailableError)


async def test_a_request_time_out_told_with_status_400_is_tried_again(moto_url: str) -> None:
    async with faulty(moto_url) as (proxy, store):
        proxy.fail(S3Fault.STATUS, status=400, code="RequestTimeout", times=1)
        await store.put("b", DATA)
        assert store.statistics.by_call["put"].retries == 1


async def test_a_refusal_is_not_tried_again(moto_url: str) -> None:
    async with faulty(moto_url) as (proxy, store):
        proxy.fail(S3Fault.STATUS, status=403, code="AccessDenied")
        await expect_all(store, StoreDeniedError)
        assert all(counters.retries == 0 for counters in store.statistics.by_call.values())


async def test_a_reset_connection_is_unavailable(moto_url: str) -> None:
    async with faulty(moto_url) as (proxy, store):
        proxy.fail(S3Fault.RESET)
        await expect_all(store, StoreUnavailableError)


@pytest.mark.parametrize("fast_reads", [True, False])
async def test_a_short_body_is_unavailable(moto_url: str, fast_reads: bool) -> None:
    async with faulty(moto_url, fast_reads=fast_reads) as (proxy, store):
        proxy.fail(S3Fault.SHORT_BODY)
        for name in ("get", "get_range", "list"):
            with pytest.raises(StoreUnavailableError):
                await CALLS[name](store)


@pytest.mark.parametrize("fast_reads", [True, False])
async def test_ten_kilobytes_a_second_end_in_a_time_out(moto_url: str, fast_reads: bool) -> None:
    """No read is late, only all of them together."""
    deadlines = {**SOON, "read_timeout_ms": 900}
    async with faulty(moto_url, fast_reads=fast_reads, **deadlines) as (proxy, store):
        proxy.fail(S3Fault.TRICKLE)
        for name in ("get", "get_range"):
            begin = time.perf_counter()
            with pytest.raises(StoreTimeoutError, match="not done within 1000 ms"):
                await CALLS[name](store)
            assert time.perf_counter() - begin < IN_TIME_S


@pytest.mark.parametrize("fast_reads", [True, False])
@pytest.mark.parametrize(
    "fault",
    [S3Fault.STATUS, S3Fault.RESET, S3Fault.SHORT_BODY, S3Fault.LOST_ANSWER, S3Fault.HANG],
)
async def test_one_fault_is_got_over(moto_url: str, fault: S3Fault, fast_reads: bool) -> None:
    """In every call, and what is read and stored is right."""
    async with faulty(
        moto_url,
        bucket=f"once-{fault.name.lower()}".replace("_", "-"),
        fast_reads=fast_reads,
        # A healthy attempt may be late, too, where the machine is busy: a part of an upload most.
        **({"read_timeout_ms": 1_000, "attempts": 10} if fault is S3Fault.HANG else {}),
    ) as (proxy, store):
        for name, call in CALLS.items():
            if not fast_reads and name != "get_range":
                continue
            proxy.fail(fault, times=1)
            result = await call(store)
            if name == "get":
                assert result == DATA
            if name == "get_range":
                assert result == DATA[1_000:51_000]
            proxy.heal()
        if not fast_reads:
            return
        assert await store.get("b", max_bytes=MIB) == DATA
        info = await store.head("large")
        assert info is not None
        assert info.size == LARGE


async def test_a_lost_answer_to_every_step_of_an_upload_is_got_over(moto_url: str) -> None:
    """Begun twice leaves one unfinished, which is listed; completed twice is seen to be done."""
    async with faulty(moto_url, bucket="steps") as (proxy, store):
        for target in (r"\?uploads$", r"partNumber=1", r"partNumber=2", r"\?uploadId="):
            await store.delete(["large"])
            method = "PUT" if "part" in target else "POST"
            fault = proxy.fail(S3Fault.LOST_ANSWER, method=method, target=target, times=1)
            await store.put_stream("large", large(), LARGE)
            assert fault.hits == 1
            info = await store.head("large")
            assert info is not None
            assert info.size == LARGE
        left = await store.list_uploads("")
        assert [upload.key for upload in left] == ["large"]
        await store.abort_upload(left[0])
        assert await store.list_uploads("") == []


async def test_an_upload_that_somebody_aborts_is_worth_another_try(moto_url: str) -> None:
    async with faulty(moto_url, bucket="aborted") as (_, store):

        async def parts() -> AsyncIterator[Buffer]:
            for number in range(LARGE // MIB):
                if number == 5:
                    for upload in await store.list_uploads(""):
                        await store.abort_upload(upload)
                yield bytes(MIB)

        with pytest.raises(RemoteStorageError):
            await store.put_stream("large", parts(), LARGE)
        assert await store.head("large") is None


async def test_an_upload_whose_parts_fail_is_aborted(moto_url: str) -> None:
    async with faulty(moto_url, bucket="broken") as (proxy, store):
        proxy.fail(S3Fault.STATUS, method="PUT", target="partNumber")
        with pytest.raises(StoreUnavailableError):
            await store.put_stream("large", large(), LARGE)
        assert proxy.requests["DELETE"] == 1
        assert await store.list_uploads("") == []
        assert await store.head("large") is None


async def test_wrong_bytes_are_handed_on(moto_url: str) -> None:
    """No store can see them; checksums of the caller do."""
    async with faulty(moto_url) as (proxy, store):
        proxy.fail(S3Fault.WRONG_BYTES, method="GET", times=1)
        data = await read_range(store)
        assert data != DATA[1_000:51_000]
        assert len(data) == 50_000


@pytest.mark.parametrize("fast_reads", [True, False])
async def test_a_store_that_sends_the_whole_object_is_understood(
    moto_url: str, fast_reads: bool
) -> None:
    async with faulty(moto_url, fast_reads=fast_reads) as (proxy, store):
        proxy.fail(S3Fault.WHOLE, method="GET")
        assert await read_range(store) == DATA[1_000:51_000]
        assert store.statistics.fallbacks == int(fast_reads)
        with pytest.raises(StoreUnavailableError):
            await store.get_range("a", len(DATA) - 1, 2, memoryview(bytearray(2)))


@pytest.mark.parametrize("fast_reads", [True, False])
async def test_a_store_that_says_200_to_a_range_is_understood(
    moto_url: str, fast_reads: bool
) -> None:
    async with faulty(moto_url, fast_reads=fast_reads) as (proxy, store):
        proxy.fail(S3Fault.STATUS_200, method="GET")
        assert await read_range(store) == DATA[1_000:51_000]
        assert store.statistics.fallbacks == 0


@pytest.mark.parametrize("fast_reads", [True, False])
async def test_a_cancelled_read_closes_its_connection_at_once(
    moto_url: str, fast_reads: bool
) -> None:
    async with faulty(moto_url, fast_reads=fast_reads) as (proxy, store):
        await read_range(store)
        proxy.fail(S3Fault.TRICKLE, method="GET")
        open_before = proxy.open_connections
        buffer = bytearray(50_000)
        task = asyncio.create_task(store.get_range("a", 0, 50_000, memoryview(buffer)))
        await until(lambda: any(buffer))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        before = bytes(buffer)
        await until(lambda: proxy.open_connections < open_before + (0 if fast_reads else 1))
        assert bytes(buffer) == before
        assert store.statistics.by_call["get_range"].errors["cancelled"] == 1


async def test_connections_are_kept(moto_url: str) -> None:
    async with faulty(moto_url) as (proxy, store):
        for _ in range(5):
            await read_range(store)
            await store.head("a")
        assert store.statistics.connections_opened == 1
        assert proxy.connections == 2


async def test_a_missing_bucket_is_told_clearly(moto_url: str) -> None:
    async with S3Faults(moto_url) as proxy:
        settings = s3_settings(proxy.url, "no-such-bucket")
        store = S3ObjectStore(
            settings,
            SystemClock(),
            SeededRandomness(1),
            credentials=FixedCredentials("a", "b"),
        )
        try:
            for name in ("put", "put_stream", "get", "get_range", "delete", "list"):
                with pytest.raises(RemoteStorageError, match="the bucket must exist") as caught:
                    await CALLS[name](store)
                assert not isinstance(caught.value, ObjectNotFoundError)
        finally:
            await store.close()


async def test_waiting_for_the_callers_parts_is_not_timed(moto_url: str) -> None:
    """A copy that a quota holds back is not a store that hangs."""
    async with faulty(moto_url, call_timeout_ms=3_000) as (_, store):

        async def slow() -> AsyncIterator[Buffer]:
            for _ in range(5):
                await asyncio.sleep(0.7)
                yield b"x"

        await store.put_stream("slow", slow(), 5)
        assert await store.get("slow", max_bytes=9) == b"xxxxx"


async def test_storage_class_and_prefix_are_sent(moto_url: str) -> None:
    async with faulty(
        moto_url, bucket="class", storage_class="STANDARD_IA", key_prefix="tier/"
    ) as (proxy, store):
        client = store._calls._client
        await store.put_stream("large", large(), LARGE)
        for key in ("tier/a", "tier/large"):
            found = await client.head_object(Bucket="class", Key=key)
            assert found["StorageClass"] == "STANDARD_IA"
        assert {method for method, _ in proxy.targets} >= {"PUT", "POST"}


async def test_nothing_is_done_after_close(moto_url: str) -> None:
    async with faulty(moto_url) as (_, store):
        await store.close()
        await store.close()
        for call in CALLS.values():
            with pytest.raises(StoreUnavailableError, match="closed"):
                await call(store)


async def test_a_listing_of_uploads_is_empty_where_the_store_has_none(moto_url: str) -> None:
    async with faulty(moto_url) as (proxy, store):
        proxy.fail(S3Fault.STATUS, status=501, code="NotImplemented")
        assert await store.list_uploads("") == []


async def test_a_policy_for_our_prefix_alone_is_enough_to_list_uploads(moto_url: str) -> None:
    async with faulty(moto_url, bucket="policy", key_prefix="tier/") as (proxy, store):
        proxy.fail(S3Fault.STATUS, target=r"\?uploads$", status=403, code="AccessDenied")
        assert await store.list_uploads("") == []
        proxy.heal()
        proxy.fail(S3Fault.STATUS, target=r"prefix=tier", status=403, code="AccessDenied")
        with pytest.raises(StoreDeniedError):
            await store.list_uploads("")


@pytest.mark.parametrize("name", ["put", "get", "get_range", "head", "list"])
async def test_an_address_that_redirects_everything_is_asked_twice(
    moto_url: str, name: str
) -> None:
    """By the library for the region, which its own call is not redirected for."""
    async with faulty(moto_url) as (proxy, store):
        proxy.fail(S3Fault.STATUS, status=307, code="TemporaryRedirect")
        with pytest.raises(RemoteStorageError, match="redirections are not followed"):
            await CALLS[name](store)
        # A ranged read is tried by our own client first.
        assert len(proxy.targets) == 2 + (name == "get_range")
