"""Writes into the log directories of a node that is alone how far its metadata store has come.

One write is under way at a time; what comes meanwhile goes into the next one. The store's file may
be given back from a copy, as logs are not: it would give out producer ids and leader epochs twice,
and topics made since would belong to nobody. By the note such a store is refused.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from uuid import UUID

from broker.controller.images.cluster_image import ClusterImage
from storage.checkpoints.store_note import StoreNote, write_store_note
from storage.environment.environment import Environment
from storage.errors import DiskError

LOGGER = logging.getLogger(__name__)


class StoreNotes:
    """See the module. Runs on the loop's thread; writes in the disk's."""

    def __init__(
        self,
        environment: Environment,
        directories: Callable[[], Sequence[str]],
        store_id: UUID,
        noted: int,
    ) -> None:
        """Write nothing yet.

        Args:
            environment: The disk.
            directories: Paths of the log directories that work now.
            store_id: Of the store.
            noted: The revision that all notes have.
        """
        self._filesystem = environment.filesystem
        self._run = environment.run_blocking
        self._directories = directories
        self._store_id = store_id
        self._revision = self._noted = noted
        self._writing: asyncio.Task[None] | None = None

    def seen(self, image: ClusterImage) -> None:
        """The store has come to the image's revision, which is on its disk."""
        self._revision = max(self._revision, image.revision)
        if self._revision > self._noted and (self._writing is None or self._writing.done()):
            self._writing = asyncio.get_running_loop().create_task(
                self._write(), name="note of the metadata store"
            )

    async def end(self) -> None:
        """Wait for what is being written."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    async def _write(self) -> None:
        while self._noted < self._revision:
            revision = self._revision
            note = StoreNote(self._store_id, revision)
            await self._run(self._write_all, note, list(self._directories()))
            self._noted = revision

    def _write_all(self, note: StoreNote, directories: list[str]) -> None:
        for directory in directories:
            try:
                write_store_note(self._filesystem, directory, note)
            except DiskError as error:
                LOGGER.warning(
                    "note of the metadata store not written directory=%s error=%s", directory, error
                )
