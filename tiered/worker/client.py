"""Client of the tier process: `Tier` on the broker's loop.

A call's way, all within one deadline:

    slot ──> running process ──> frame sent ──> answer ──> result or error
     │             │                                │
     QueueFullError TierProcessError                └ the process ends: TierProcessError

Cancelled, or out of time, the caller has the process stop the work and waits for it to say so, at
most CANCEL_WAIT_MS: a file that was being written is then written no more, as in the same process.
A slot is free again when the process has answered, not when the caller has left.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from config.tier import TierConfig
from storage.environment.clock import Clock
from storage.environment.timer import Timer
from tiered.deadline import Deadline, call_deadline_ms
from tiered.errors import StoreTimeoutError, TierProcessError
from tiered.object_store.base import ObjectPage, PendingUpload
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tier import (
    ChunkResult,
    CopyResult,
    Fault,
    FoundChunks,
    IndexesResult,
    SegmentFiles,
    SideFile,
    TopicFacts,
)
from tiered.worker.budget import Budget
from tiered.worker.calls import CALLS
from tiered.worker.error_codec import error_from_json
from tiered.worker.frames import VERSION, Kind, Message, MessageTooLargeError
from tiered.worker.process import Processes
from tiered.worker.process_usage import Usage, read_usage
from tiered.worker.service import CALLS_MAX
from tiered.worker.supervisor import Supervisor

WAITING_MAX: Final = 1000
"""Calls that wait for a slot. Rooms above bound what they ask; this is for what they forget."""

CANCEL_WAIT_MS: Final = 1_000.0
"""How long a cancelled caller waits for the process to confirm that the work has stopped."""

SLACK_MS: Final = 15_000
"""On top of the store's deadlines: a start of the process, reading and checking local files."""

DRAIN_MS: Final = 2_000.0
"""What `close` lets calls under way have."""

COPY_CALLS: Final = 8
"""To the store, for a segment: log, indexes, manifest, and removing them when one fails; and
waiting while others copy."""


class TierClient:
    """See the module.

    Args:
        settings: Sent to the process; sizes and deadlines are derived from them.
        processes: Where the process comes from.
        timer, clock: Of the broker.
        drain_ms: See `close`.
        usage: Memory and CPU of a process, by its id.
    """

    def __init__(
        self,
        settings: TierConfig,
        processes: Processes,
        *,
        timer: Timer,
        clock: Clock,
        drain_ms: float = DRAIN_MS,
        usage: Callable[[int], Usage | None] = read_usage,
    ) -> None:
        self._settings = settings
        self._timer = timer
        self._drain_ms = drain_ms
        self._usage = usage
        hello = {
            "version": VERSION,
            "settings": settings.model_dump(mode="json"),
            "log_level": logging.getLogger().getEffectiveLevel(),
        }
        self.supervisor = Supervisor(processes, hello, timer=timer, clock=clock)
        slots = (
            settings.remote_log_manager_copier_thread_pool_size
            + settings.remote_log_reader_threads
            + settings.remote_log_manager_expiration_thread_pool_size
            + settings.remote_log_manager_follower_thread_pool_size
            + 32
        )
        self._slots = Budget("tier process calls", min(slots, CALLS_MAX), waiting_max=WAITING_MAX)
        self._closed = False
        self._counters: Mapping[str, Any] = {}

    def start(self) -> None:
        """Start the process now and not with the first call."""
        if not self._closed:
            self.supervisor.start()

    # -- a call ----------------------------------------------------------------------------------

    async def _call(self, method: str, *arguments: Any, calls: int = 1, size: int = 0) -> Any:
        codec = CALLS[method]
        encoded, data = codec.encode(*arguments)
        deadline_ms = SLACK_MS + call_deadline_ms(self._settings.store.call_timeout_ms, calls, size)
        try:
            async with Deadline(self._timer, deadline_ms, method):
                answer = await self._answer(method, encoded, data)
        except StoreTimeoutError as error:
            raise TierProcessError(str(error)) from error
        if answer.kind is Kind.ERROR:
            raise _described(answer)
        try:
            return codec.decode_result(answer.fields["result"], answer.data)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise TierProcessError(f"no result of {method}: {error!r}") from error

    async def _answer(self, method: str, arguments: Any, data: bytes) -> Message:
        if self._closed:
            raise TierProcessError("the tier is closed")
        share = await self._slots.take(1)
        try:
            session = await self.supervisor.session()
        except BaseException:
            self._slots.give_back(share)
            raise
        number, answer = session.call(method, arguments, data)
        answer.add_done_callback(lambda _: self._slots.give_back(share))
        is_sent = False
        try:
            await session.send(number, method, arguments, data)
            is_sent = True
            message = await asyncio.shield(answer)
        except MessageTooLargeError as error:
            session.forget(number)
            raise TierProcessError(f"{method} cannot be asked: {error}") from error
        except asyncio.CancelledError:
            session.cancel(number)
            if not is_sent:
                # The process has not begun it, and will not answer what it does not know.
                session.forget(number)
            await self._stopped(answer)
            raise
        if message is None:
            raise TierProcessError(f"the tier process has ended: {session.ended}")
        return message

    async def _stopped(self, answer: "asyncio.Future[Message | None]") -> None:
        """Wait until a cancelled call is answered; cancelled again, return."""
        if answer.done():
            return
        stopped: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def stop(_: object = None) -> None:
            if not stopped.done():
                stopped.set_result(None)

        answer.add_done_callback(stop)
        handle = self._timer.call_later_ms(CANCEL_WAIT_MS, stop)
        try:
            await stopped
        finally:
            handle.cancel()
            answer.remove_done_callback(stop)

    # -- Tier ------------------------------------------------------------------------------------

    async def copy_segment(
        self, metadata: RemoteLogSegmentMetadata, files: SegmentFiles, topic: TopicFacts
    ) -> CopyResult:
        """As `Tier`."""
        result: CopyResult = await self._call(
            "copy_segment",
            metadata,
            files,
            topic,
            calls=COPY_CALLS,
            # Twice: others may have to be copied before it.
            size=2 * metadata.segment_size_bytes,
        )
        return result

    async def fetch_indexes(
        self, metadata: RemoteLogSegmentMetadata, directory: str, stem: str
    ) -> IndexesResult:
        """As `Tier`."""
        result: IndexesResult = await self._call(
            "fetch_indexes", metadata, directory, stem, calls=4
        )
        return result

    async def fetch_chunk(
        self, metadata: RemoteLogSegmentMetadata, manifest: str, chunk: int, path: str
    ) -> ChunkResult:
        """As `Tier`."""
        result: ChunkResult = await self._call(
            "fetch_chunk", metadata, manifest, chunk, path, calls=2
        )
        return result

    async def refer_to_chunks(
        self,
        metadata: RemoteLogSegmentMetadata,
        manifest: str,
        chunks: Sequence[int],
        directory: str,
    ) -> FoundChunks:
        """As `Tier`."""
        result: FoundChunks = await self._call(
            "refer_to_chunks", metadata, manifest, chunks, directory, calls=1 + len(chunks)
        )
        return result

    async def fetch_side_file(self, metadata: RemoteLogSegmentMetadata, kind: SideFile) -> bytes:
        """As `Tier`."""
        result: bytes = await self._call("fetch_side_file", metadata, kind, calls=3)
        return result

    async def delete_segment(self, metadata: RemoteLogSegmentMetadata) -> None:
        """As `Tier`."""
        await self._call("delete_segment", metadata, calls=4)

    async def is_complete(self, metadata: RemoteLogSegmentMetadata) -> bool:
        """As `Tier`."""
        result: bool = await self._call("is_complete", metadata, calls=4)
        return result

    async def verify_segment(self, metadata: RemoteLogSegmentMetadata) -> Sequence[Fault]:
        """As `Tier`."""
        result: Sequence[Fault] = await self._call(
            "verify_segment", metadata, calls=COPY_CALLS, size=2 * metadata.segment_size_bytes
        )
        return result

    async def list_objects(self, prefix: str, continuation: str | None) -> ObjectPage:
        """As `Tier`."""
        result: ObjectPage = await self._call("list_objects", prefix, continuation)
        return result

    async def delete_objects(self, keys: Sequence[str]) -> None:
        """As `Tier`."""
        await self._call("delete_objects", keys, calls=1 + len(keys) // 1000)

    async def list_uploads(self, prefix: str) -> Sequence[PendingUpload]:
        """As `Tier`."""
        result: Sequence[PendingUpload] = await self._call("list_uploads", prefix, calls=4)
        return result

    async def abort_upload(self, upload: PendingUpload) -> None:
        """As `Tier`."""
        await self._call("abort_upload", upload)

    async def put_object(self, key: str, data: bytes) -> None:
        """As `Tier`."""
        await self._call("put_object", key, data, calls=2)

    async def get_object(self, key: str) -> bytes:
        """As `Tier`."""
        result: bytes = await self._call("get_object", key, calls=2)
        return result

    def statistics(self) -> Mapping[str, Any]:
        """The process's newest counters, at most a second old, and `worker`: this end's.

        Counters of the process start at 0 with each process: `worker.restarts` says when.
        """
        session = self.supervisor.current
        if session is not None and session.counters:
            self._counters = session.counters
        usage = self._usage(session.pid) if session is not None else None
        slots = self._slots
        return {
            **self._counters,
            "worker": {
                "mode": "process",
                "state": str(self.supervisor.state),
                "pid": session.pid if session is not None else None,
                "starts": self.supervisor.starts,
                "restarts": self.supervisor.restarts,
                "losses": self.supervisor.losses,
                "calls_in_flight": slots.taken,
                "calls_in_flight_max": slots.size,
                "calls_waiting": slots.waiting,
                "calls_refused": slots.refused,
                "round_trip_ms": session.round_trip_ms if session is not None else 0.0,
                "resident_bytes": usage.resident_bytes if usage is not None else None,
                "cpu_seconds": usage.cpu_seconds if usage is not None else None,
            },
        }

    async def close(self) -> None:
        """Take no more calls; let those under way end for a moment; end the process."""
        self._closed = True
        await self.supervisor.stop(self._drain_ms)


def _described(answer: Message) -> Exception:
    try:
        return error_from_json(answer.fields["error"])
    except (KeyError, TypeError) as error:
        return TierProcessError(f"an unknown error: {error!r}")
