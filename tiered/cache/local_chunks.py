"""Batched lookup of local chunks: those wanted in one loop iteration are one call to the tier.

    find(4) ─┐
    find(5) ─┼─ next loop iteration ──> refer_to_chunks([4, 5, 6]) ──> each its reference, or None
    find(6) ─┘

None: the chunk is not stored plainly on this machine, or it is damaged, or the tier failed; then
it is downloaded like any other, which reports the error. A segment that is stored in another form
is not looked up again.

Chunks of one object share one open file.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final, Protocol
from uuid import UUID
from weakref import WeakValueDictionary

from storage.environment.filesystem import Filesystem
from storage.environment.off_loop import Run
from storage.errors import DiskError
from tiered.cache.cached_chunk import ChunkSource
from tiered.errors import TieredError
from tiered.format.chunk_file import ChunkFile, ChunkKey, chunk_path
from tiered.format.chunk_reference import Reference, ReferencedChunk
from tiered.segment_metadata import RemoteLogSegmentMetadata
from tiered.tier import FoundChunks

_log = logging.getLogger(__name__)

RUN_CHUNKS: Final = 4
"""Chunks that are best asked for together: aligned, so that readers of one segment agree."""

_ELSEWHERE_MAX: Final = 1024
"""Segments in another form that are remembered."""

Found = tuple[ChunkFile, ReferencedChunk]


class ReferToChunks(Protocol):
    """`Tier.refer_to_chunks`."""

    def __call__(
        self,
        metadata: RemoteLogSegmentMetadata,
        manifest: str,
        chunks: Sequence[int],
        directory: str,
    ) -> Coroutine[Any, Any, FoundChunks]:
        """Compare chunks where they lie."""
        ...


class _Question:
    """Chunks of one segment that are asked for together."""

    __slots__ = ("source", "wanted")

    def __init__(self, source: ChunkSource) -> None:
        self.source = source
        self.wanted: dict[int, asyncio.Future[Found | None]] = {}


class LocalChunks:
    """See the module. Touched on the loop's thread only.

    Attributes:
        questions: Asked of the tier since start.
    """

    def __init__(
        self,
        refer: ReferToChunks,
        filesystem: Filesystem,
        run: Run,
        directory: str,
        unclaimed: Callable[[str], None],
    ) -> None:
        """Ask nothing yet.

        Args:
            refer: Asks the tier.
            filesystem: Where the objects are.
            run: For what may wait for the disk.
            directory: Of the chunk cache.
            unclaimed: Called with the file of a reference whose reader has gone.
        """
        self._refer = refer
        self._filesystem = filesystem
        self._run = run
        self._directory = directory
        self._unclaimed = unclaimed
        self._gathering: dict[UUID, _Question] = {}
        self._under_way: set[asyncio.Task[None]] = set()
        self._elsewhere: OrderedDict[UUID, None] = OrderedDict()
        # By path of the object; as long as a chunk of it is in use.
        self._open: WeakValueDictionary[str, ReferencedChunk] = WeakValueDictionary()
        self.questions = 0

    async def find(self, source: ChunkSource, key: ChunkKey) -> Found | None:
        """A reference to the chunk, compared and open; None: see the module."""
        if key.segment in self._elsewhere:
            return None
        loop = asyncio.get_running_loop()
        question = self._gathering.get(key.segment)
        if question is None:
            question = self._gathering[key.segment] = _Question(source)
            loop.call_soon(self._begin, key.segment)
        answer: asyncio.Future[Found | None] = loop.create_future()
        question.wanted[key.chunk] = answer
        return await answer

    async def close(self) -> None:
        """Stop what is under way."""
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _begin(self, segment: UUID) -> None:
        question = self._gathering.pop(segment)
        task = asyncio.get_running_loop().create_task(self._ask(segment, question))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def _ask(self, segment: UUID, question: _Question) -> None:
        try:
            found = await self._answer(segment, question)
            for number, (name, chunk) in found.items():
                answer = question.wanted[number]
                if answer.done():
                    # Cancelled: it is neither counted nor evicted by the cache.
                    self._unclaimed(chunk_path(self._directory, name))
                else:
                    answer.set_result((name, chunk))
        except (TieredError, DiskError) as error:
            _log.debug("chunks in the object store's directory cannot be used in place: %s", error)
        finally:
            for answer in question.wanted.values():
                if not answer.done():
                    answer.set_result(None)

    async def _answer(self, segment: UUID, question: _Question) -> dict[int, Found]:
        source = question.source
        numbers = sorted(number for number, answer in question.wanted.items() if not answer.done())
        if not numbers:
            return {}
        source.pin()
        try:
            self.questions += 1
            found = await self._refer(
                source.metadata, source.manifest_path, numbers, self._directory
            )
        finally:
            source.unpin()
        if not found.path:
            self._elsewhere[segment] = None
            if len(self._elsewhere) > _ELSEWHERE_MAX:
                self._elsewhere.popitem(last=False)
        if not found.chunks:
            return {}
        opened = await self._opened(found)
        if opened is None:
            return {}
        answers = {}
        for number, length, crc, position in found.chunks:
            reference = Reference(found.path, position, found.size, found.modified_ns)
            chunk = self._open[found.path] = opened.of_same_object(reference, length)
            answers[number] = (
                ChunkFile(ChunkKey(segment, number), length, crc, is_reference=True),
                chunk,
            )
        return answers

    async def _opened(self, found: FoundChunks) -> ReferencedChunk | None:
        """The object, open; None if it is not the one that was compared any more."""
        reference = Reference(found.path, 0, found.size, found.modified_ns)
        known = self._open.get(found.path)
        if known is not None:
            known = known.of_same_object(reference, 0)
            if known.is_current():
                return known
        file = await self._run(self._open_object, found.path)
        opened = ReferencedChunk(file, reference, 0)
        return opened if opened.is_current() else None

    def _open_object(self, path: str) -> Any:
        return self._filesystem.open(path, readonly=True)
