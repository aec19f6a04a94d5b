"""Writes the member's note into the log directories: when it registers, and what it sees later.

The highest revision that was seen is the floor below which a store is refused, and so is one that
lacks the controller's write that was seen last (`images.controller_history`). They are written
every `WRITE_EVERY_MS`, and at once when this broker leads or follows in another leader epoch: a
copy of the store that lacks the epoch is told before it can be given back.

Every `WRITE_EVERY_MS` also when nothing has changed: the note is another file then, by which a copy
of the directory from before is told, should it be put back into it after a kill
(`storage.checkpoints.member_note`).
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Final

from broker.controller.images.cluster_image import ClusterImage
from broker.membership.last_run import boot_id
from storage.checkpoints.member_note import MemberNote, write_member_note
from storage.environment.environment import Environment
from storage.environment.filesystem import Filesystem
from storage.errors import DiskError

LOGGER = logging.getLogger(__name__)

WRITE_EVERY_MS: Final = 10_000.0
"""Between two writes: a store, or a directory, restored from within is not found out."""


class MemberNotes:
    """See the module. Runs on the loop's thread; writes in the disk's.

    One write is under way at a time; what comes meanwhile goes into the next one.

    Attributes:
        past: Broker epochs of lives that had these directories, and have ended.
    """

    def __init__(
        self,
        environment: Environment,
        directories: Callable[[], Sequence[str]],
        past: Collection[int] = (),
    ) -> None:
        """Write nothing yet.

        Args:
            environment: Timer and disk.
            directories: Paths of the log directories that work now.
            past: Broker epochs of lives on these directories, see `past_epochs`.
        """
        self.past = past
        self._filesystem: Filesystem = environment.filesystem
        self._run = environment.run_blocking
        self._timer = environment.timer
        self._directories = directories
        self._note: MemberNote | None = None
        self._written: MemberNote | None = None
        self._writing: asyncio.Task[None] | None = None
        # A life begins and ends with a write of its own, and never two are under way.
        self._turn = asyncio.Lock()
        self._closed = False

    async def begin(self, epoch: int) -> None:
        """A life begins; on disk when this returns."""
        boot = await self._run(boot_id, self._filesystem)
        self._note = MemberNote(boot, epoch, epoch)
        await self._write()
        self._timer.call_later_ms(WRITE_EVERY_MS, self._tick)

    def seen(self, image: ClusterImage) -> None:
        """The store has shown this; brokers that are new are written soon."""
        note, brokers = self._note, image.brokers
        if note is None or image.revision <= note.revision:
            return
        self._note = note = replace(note, revision=image.revision)
        write = image.newest_write
        # The last word of a controller that is gone is in no history.
        if write is not None and write.epoch == image.controller_epoch:
            self._note = note = replace(note, writer=write.writer, write=write.revision)
        if len(brokers) != len(note.brokers) or not all(map(brokers.__contains__, note.brokers)):
            self._note = replace(self._note, brokers=tuple(sorted(brokers)))
            self._write_soon()

    def acted(self) -> None:
        """This broker leads or follows in a leader epoch of the newest image: written soon."""
        if self._note is not None and self._note != self._written:
            self._write_soon()

    def disk_failed(self) -> None:
        """A disk has refused a write: what the kernel had of it may be lost."""
        if self._note is not None and not self._note.failed:
            self._note = replace(self._note, failed=True)
            self._write_soon()

    async def end(self) -> None:
        """Write what has not been written."""
        self._closed = True
        if self._writing is not None:
            await asyncio.wait([self._writing])
        if self._note is not None:
            await self._write()

    def _tick(self) -> None:
        if not self._closed:
            self._written = None
            self._write_soon()
            self._timer.call_later_ms(WRITE_EVERY_MS, self._tick)

    def _write_soon(self) -> None:
        if not self._closed and (self._writing is None or self._writing.done()):
            self._writing = asyncio.get_running_loop().create_task(
                self._write(), name="member note"
            )

    async def _write(self) -> None:
        async with self._turn:
            while self._written != self._note:
                note = self._note
                assert note is not None
                await self._run(self._write_all, note, list(self._directories()))
                self._written = note

    def _write_all(self, note: MemberNote, directories: list[str]) -> None:
        for directory in directories:
            try:
                place = self._filesystem.identity(directory)
                write_member_note(self._filesystem, directory, replace(note, place=place))
            except DiskError as error:
                LOGGER.warning("member note not written directory=%s error=%s", directory, error)
