"""An object store in memory that fails in every way a real one does, when the test says so.

    store = MemoryObjectStore(clock)
    store.fail("get_range", Fault.RESET)                      the next ranged read breaks midway
    store.fail("put", Fault.LOST_ANSWER, key=".rsm-manifest") stored, but the answer is lost
    store.fail("get_range", Fault.SLOW, bytes_per_second=10_000, times=FOREVER)
    store.heal()                                              no more faults; who hangs goes on
    store.objects["a/b"] = StoredObject(b"...", modified_ms)  the bucket from outside

What a caller sees of each fault, and what has happened to the object:

    fault          reading                        storing, deleting            listing
    UNAVAILABLE    StoreUnavailableError (503)    the same; nothing done       the same
    TIMEOUT        StoreTimeoutError at once      the same; nothing done       the same
    RESET          half, StoreUnavailableError    half deleted; of put_stream  the same
                                                  an unfinished upload stays
    SHORT_BODY     half, StoreUnavailableError    as RESET                     the same
    WRONG_BYTES    one byte flipped, no error     stored with one flipped      as if all were well
    DENIED         StoreDeniedError               the same; nothing done       the same
    SLOW           at so many bytes a second; StoreTimeoutError when the total deadline passes
    HANG           until cancelled, healed or the total deadline: StoreTimeoutError; nothing done
    LOST_ANSWER    as RESET                       done, StoreUnavailableError  as RESET

Waiting is on the `timer` if there is one (so a test moves the time by hand), else on the loop.
"""

import asyncio
import itertools
from collections import Counter
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from enum import Enum
from typing import Final, NamedTuple

from broker.runtime.timer import Timer, TimerHandle
from storage.environment.clock import Clock
from tiered.errors import (
    ObjectNotFoundError,
    RemoteStorageError,
    StoreDeniedError,
    StoreTimeoutError,
    StoreUnavailableError,
)
from tiered.object_store.base import (
    Buffer,
    ObjectInfo,
    ObjectPage,
    PendingUpload,
    StoreDeadlines,
)
from tiered.object_store.keys import check_key, check_prefix
from tiered.object_store.statistics import CALLS, StoreStatistics

FOREVER: Final = 1 << 60

TOTAL_DEADLINE_UNIT: Final = 64 * 1024 * 1024


class Fault(Enum):
    """See the module."""

    UNAVAILABLE = "503"
    TIMEOUT = "time-out"
    RESET = "reset mid-body"
    SHORT_BODY = "short body"
    WRONG_BYTES = "wrong bytes"
    DENIED = "403"
    SLOW = "slow"
    HANG = "hang"
    LOST_ANSWER = "lost answer"


class StoredObject(NamedTuple):
    """What is in the bucket under a key."""

    data: bytes
    modified_ms: int


class ScriptedFault:
    """A fault that is still to come, or has come `hits` times."""

    def __init__(
        self,
        calls: frozenset[str],
        fault: Fault,
        key: str,
        skip: int,
        times: int,
        bytes_per_second: int,
    ) -> None:
        self.calls = calls
        self.fault = fault
        self.key = key
        self.skip = skip
        self.times = times
        self.bytes_per_second = bytes_per_second
        self.hits = 0


class MemoryObjectStore:
    """`tiered.object_store.base.ObjectStore` in memory; see the module.

    Attributes:
        objects: The bucket.
        uploads: Unfinished multipart uploads by id.
        calls: Calls begun, by name of the method.
        log: (method, key or prefix) of every call, in order.
        hanging: Calls that hang now.
        on_call: Called with (method, key) before anything else happens, e.g. to crash there.
        page_max: Most objects of a page, whatever `limit` says.
    """

    def __init__(
        self,
        clock: Clock,
        *,
        deadlines: StoreDeadlines | None = None,
        timer: Timer | None = None,
        page_max: int = 1000,
        name: str = "memory://bucket",
    ) -> None:
        self.name = name
        self.statistics = StoreStatistics(clock)
        self.objects: dict[str, StoredObject] = {}
        self.uploads: dict[str, PendingUpload] = {}
        self.calls: Counter[str] = Counter()
        self.log: list[tuple[str, str]] = []
        self.hanging = 0
        self.on_call: Callable[[str, str], None] | None = None
        self.page_max = page_max
        self.closed = False
        self._clock = clock
        self._deadlines = deadlines or StoreDeadlines()
        self._timer = timer
        self._faults: list[ScriptedFault] = []
        self._hung: set[asyncio.Future[bool]] = set()
        self._upload_ids = itertools.count(1)

    # -- the script --------------------------------------------------------------------------

    def fail(
        self,
        call: str,
        fault: Fault,
        *,
        key: str = "",
        skip: int = 0,
        times: int = 1,
        bytes_per_second: int = 10_000,
    ) -> ScriptedFault:
        """Let calls whose key (prefix, in lists) contains `key` fail, after `skip` of them.

        Args:
            call: A method's name, or several with `|` between them, or "*": all.
            fault: How.
            key: Part of the key; "" fits all.
            skip: So many matching calls go well first.
            times: How often; `FOREVER`: until `heal`.
            bytes_per_second: Of SLOW.
        """
        names = frozenset(CALLS) if call == "*" else frozenset(call.split("|"))
        assert names <= frozenset(CALLS), f"no such call: {call}"
        scripted = ScriptedFault(names, fault, key, skip, times, bytes_per_second)
        self._faults.append(scripted)
        return scripted

    def heal(self) -> None:
        """Forget all faults; calls that hang go on as if nothing had been."""
        self._faults.clear()
        for hung in self._hung:
            if not hung.done():
                hung.set_result(True)

    def _next_fault(self, call: str, key: str) -> ScriptedFault | None:
        for scripted in self._faults:
            if call in scripted.calls and scripted.key in key:
                if scripted.skip > 0:
                    scripted.skip -= 1
                    continue
                scripted.times -= 1
                scripted.hits += 1
                if scripted.times <= 0:
                    self._faults.remove(scripted)
                return scripted
        return None

    async def _begin(self, call: str, key: str, size: int = 0) -> Fault | None:
        """Count a call and wait as its fault wants; the fault that is left to act out."""
        self.calls[call] += 1
        self.log.append((call, key))
        if self.closed:
            raise StoreUnavailableError("the store is closed")
        if self.on_call is not None:
            self.on_call(call, key)
        # Every real call gives others a turn; one that never does hides races.
        await asyncio.sleep(0)
        scripted = self._next_fault(call, key)
        if scripted is None:
            return None
        total_ms = float(self._deadlines.total_ms * max(1, -(-size // TOTAL_DEADLINE_UNIT)))
        match scripted.fault:
            case Fault.UNAVAILABLE:
                raise StoreUnavailableError(f"{call} {key}: 503 SlowDown")
            case Fault.TIMEOUT:
                raise StoreTimeoutError(f"{call} {key}: time-out")
            case Fault.DENIED:
                raise StoreDeniedError(f"{call} {key}: 403 AccessDenied")
            case Fault.HANG:
                if not await self._wait(total_ms):
                    raise StoreTimeoutError(f"{call} {key}: no answer for {total_ms:.0f} ms")
                return None
            case Fault.SLOW:
                needed_ms = size / scripted.bytes_per_second * 1000
                healed = await self._wait(min(needed_ms, total_ms))
                if not healed and needed_ms > total_ms:
                    raise StoreTimeoutError(f"{call} {key}: not done after {total_ms:.0f} ms")
                return None
        return scripted.fault

    async def _wait(self, duration_ms: float) -> bool:
        """Until healed (True) or so long (False)."""
        loop = asyncio.get_running_loop()
        hung: asyncio.Future[bool] = loop.create_future()

        def expire() -> None:
            if not hung.done():
                hung.set_result(False)

        handle: TimerHandle
        if self._timer is not None:
            handle = self._timer.call_later_ms(duration_ms, expire)
        else:
            handle = loop.call_later(duration_ms / 1000, expire)
        self._hung.add(hung)
        self.hanging += 1
        try:
            return await hung
        finally:
            self.hanging -= 1
            self._hung.discard(hung)
            handle.cancel()

    # -- storing -----------------------------------------------------------------------------

    def _store(self, key: str, data: bytes, fault: Fault | None) -> None:
        if fault is Fault.WRONG_BYTES:
            data = flip(data)
        self.objects[key] = StoredObject(data, self._clock.now_ms())
        if fault is Fault.LOST_ANSWER:
            raise StoreUnavailableError(f"{key}: connection reset before the answer came")

    async def put(self, key: str, data: Buffer) -> None:
        with self.statistics.measure("put", len(data)):
            check_key(key)
            fault = await self._begin("put", key, len(data))
            if fault in (Fault.RESET, Fault.SHORT_BODY):
                raise StoreUnavailableError(f"put {key}: connection reset")
            self._store(key, bytes(data), fault)

    async def put_stream(self, key: str, parts: AsyncIterable[Buffer], size: int) -> None:
        with self.statistics.measure("put_stream", size):
            check_key(key)
            fault = await self._begin("put_stream", key, size)
            upload = PendingUpload(key, f"upload-{next(self._upload_ids)}", self._clock.now_ms())
            self.uploads[upload.upload_id] = upload
            broken = fault in (Fault.RESET, Fault.SHORT_BODY)
            data = bytearray()
            try:
                async for part in parts:
                    data += part
                    await asyncio.sleep(0)
                    if broken and len(data) * 2 >= size:
                        break
            except BaseException:
                del self.uploads[upload.upload_id]
                raise
            if broken:
                # The store does not answer the abort either.
                raise StoreUnavailableError(f"put_stream {key}: connection reset")
            del self.uploads[upload.upload_id]
            if len(data) != size:
                raise ValueError(f"{key}: {len(data)} bytes came where {size} were promised")
            self._store(key, bytes(data), fault)

    # -- reading -----------------------------------------------------------------------------

    async def get(self, key: str, *, max_bytes: int) -> bytes:
        with self.statistics.measure("get") as counters:
            check_key(key)
            known = self.objects.get(key)
            fault = await self._begin("get", key, len(known.data) if known else 0)
            data = self._found(key).data
            if len(data) > max_bytes:
                raise RemoteStorageError(f"{key} has {len(data)} bytes, more than {max_bytes}")
            if fault is Fault.WRONG_BYTES:
                data = flip(data)
            elif fault is not None:
                raise StoreUnavailableError(f"get {key}: {fault.value}")
            counters.bytes += len(data)
            return data

    async def get_range(self, key: str, position: int, length: int, into: memoryview) -> None:
        with self.statistics.measure("get_range", length):
            check_key(key)
            fault = await self._begin("get_range", key, length)
            data = self._found(key).data[position : position + length]
            if fault is Fault.WRONG_BYTES:
                data = flip(data)
            elif fault is not None:
                data = data[: length // 2]
            into[: len(data)] = data
            if len(data) < length:
                problem = fault.value if fault else "short body"
                raise StoreUnavailableError(
                    f"get_range {key}: {len(data)} of {length} bytes from {position}: {problem}"
                )

    def local_path(self, key: str) -> str | None:
        return None

    async def head(self, key: str) -> ObjectInfo | None:
        with self.statistics.measure("head"):
            check_key(key)
            fault = await self._begin("head", key)
            if fault not in (None, Fault.WRONG_BYTES):
                raise StoreUnavailableError(f"head {key}: connection reset")
            found = self.objects.get(key)
            return None if found is None else ObjectInfo(key, len(found.data), found.modified_ms)

    def _found(self, key: str) -> StoredObject:
        try:
            return self.objects[key]
        except KeyError:
            raise ObjectNotFoundError(key) from None

    # -- deleting, listing -------------------------------------------------------------------

    async def delete(self, keys: Sequence[str]) -> None:
        with self.statistics.measure("delete"):
            assert len(keys) <= 1000
            for key in keys:
                check_key(key)
            fault = await self._begin("delete", " ".join(keys))
            halfway = fault in (Fault.RESET, Fault.SHORT_BODY)
            for key in keys[: (len(keys) + 1) // 2] if halfway else keys:
                self.objects.pop(key, None)
            if halfway or fault is Fault.LOST_ANSWER:
                raise StoreUnavailableError("delete: connection reset before the answer came")

    async def list(
        self,
        prefix: str,
        *,
        after: str = "",
        folders: bool = False,
        continuation: str | None = None,
        limit: int = 1000,
    ) -> ObjectPage:
        with self.statistics.measure("list"):
            check_prefix(prefix)
            check_prefix(after)
            fault = await self._begin("list", prefix)
            if fault not in (None, Fault.WRONG_BYTES):
                raise StoreUnavailableError(f"list {prefix}: connection reset")
            behind = continuation or after
            limit = max(1, min(limit, self.page_max))
            return page_of(self.objects, prefix, behind, folders=folders, limit=limit)

    async def list_uploads(self, prefix: str) -> Sequence[PendingUpload]:
        with self.statistics.measure("list_uploads"):
            check_prefix(prefix)
            fault = await self._begin("list_uploads", prefix)
            if fault not in (None, Fault.WRONG_BYTES):
                raise StoreUnavailableError(f"list_uploads {prefix}: connection reset")
            return sorted(
                upload for upload in self.uploads.values() if upload.key.startswith(prefix)
            )

    async def abort_upload(self, upload: PendingUpload) -> None:
        with self.statistics.measure("abort_upload"):
            fault = await self._begin("abort_upload", upload.key)
            if fault in (Fault.RESET, Fault.SHORT_BODY):
                raise StoreUnavailableError("abort_upload: connection reset")
            self.uploads.pop(upload.upload_id, None)
            if fault is Fault.LOST_ANSWER:
                raise StoreUnavailableError("abort_upload: connection reset before the answer came")

    async def close(self) -> None:
        self.closed = True

    # -- the bucket from outside -------------------------------------------------------------

    def leave_upload(self, key: str) -> PendingUpload:
        """An upload that somebody began and nobody will finish."""
        upload = PendingUpload(key, f"upload-{next(self._upload_ids)}", self._clock.now_ms())
        self.uploads[upload.upload_id] = upload
        return upload

    def damage(self, key: str, position: int) -> None:
        """Flip one bit of a stored object."""
        found = self.objects[key]
        self.objects[key] = found._replace(data=flip(found.data, position))


def page_of(
    objects: Mapping[str, StoredObject], prefix: str, behind: str, *, folders: bool, limit: int
) -> ObjectPage:
    """A part of a listing, from behind a key or folder on."""
    names = {
        folder_of(key, prefix) if folders else key for key in objects if key.startswith(prefix)
    }
    keys = sorted(name for name in names if name > behind)
    page = keys[:limit]
    infos = [
        ObjectInfo(key, len(objects[key].data), objects[key].modified_ms)
        for key in page
        if not key.endswith("/")
    ]
    return ObjectPage(
        infos,
        page[-1] if len(page) < len(keys) else None,
        [key for key in page if key.endswith("/")],
    )


def folder_of(key: str, prefix: str) -> str:
    """What a listing by folders tells instead of `key`: itself, or its first folder."""
    head, slash, _ = key[len(prefix) :].partition("/")
    return prefix + head + slash


def flip(data: bytes, position: int | None = None) -> bytes:
    """The bytes with one bit changed, in the middle unless told; nothing if there are none."""
    if not data:
        return data
    at = len(data) // 2 if position is None else position
    return data[:at] + bytes([data[at] ^ 0x01]) + data[at + 1 :]
