"""Compaction of a table's small files: `rewrite` on a runner, then one commit for some tasks.

    view ─> groups ─┬─> a wave of tasks, `max_bytes` of files ─> commit ─┐
                    └──────────────── next wave <────────────────────────┘

    commit     CommitConflictError: view again; tasks whose files are all still in the table are
               committed on the new view, the others are dropped, and their new files removed
    killed     new files are orphans; none of them is in the table

Offsets stay as the view has them: a commit of others in between makes it a conflict. A
job that is overtaken by such a commit finds its offsets where they were and commits again.
"""

import logging
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, Protocol, TypeVar

from pipeline.lake.errors import CommitConflictError, ForeignTableError
from pipeline.lake.files.data_file import CompactedNames
from pipeline.lake.maintain.groups import Group, GroupSettings, choose_groups
from pipeline.lake.maintain.rewrite import RewriteSpec, RewriteTask, Rewritten, rewrite
from pipeline.lake.sinks.base import Sink, TableView
from pipeline.lake.work.task import TableTarget
from storage.environment.randomness import Randomness

LOGGER = logging.getLogger(__name__)

CONFLICTS_MAX: Final = 20
"""Of one wave, in a row: the table is changed faster than it can be read."""

T = TypeVar("T")
R = TypeVar("R")


class Mapper(Protocol):
    """Runs work somewhere: `LocalRunner`, `SparkRunner`."""

    def map(self, work: Callable[[T], R], items: Sequence[T]) -> Sequence[R]:
        """`work` of each item, in the order of the items."""
        ...


class Compacted(NamedTuple):
    """Result of a compaction, or its preview.

    Attributes:
        replaced: Files that left the table.
        replaced_bytes: Of them.
        made: Files that came instead.
        made_bytes: Of them.
        dropped: Tasks whose files another commit replaced meanwhile.
        left_out: Sentences about files that stayed as they are.
    """

    replaced: int = 0
    replaced_bytes: int = 0
    made: int = 0
    made_bytes: int = 0
    dropped: int = 0
    left_out: tuple[str, ...] = ()

    def plus(self, other: "Compacted") -> "Compacted":
        """Both together."""
        return Compacted(
            self.replaced + other.replaced,
            self.replaced_bytes + other.replaced_bytes,
            self.made + other.made,
            self.made_bytes + other.made_bytes,
            self.dropped + other.dropped,
            self.left_out + other.left_out,
        )


class Compaction:
    """Puts the small files of one table together; see the module."""

    def __init__(
        self,
        sink: Sink,
        target: Callable[[], TableTarget],
        settings: GroupSettings,
        randomness: Randomness,
        *,
        max_bytes: int,
        kept: Callable[[TableView], frozenset[str]] = lambda _: frozenset(),
    ) -> None:
        """Nothing is done yet.

        Args:
            sink: The table.
            target: Where its files are; asked once there is a table.
            settings: Which files are put together.
            randomness: For the names of new ones.
            max_bytes: Of the files that are replaced by one commit.
            kept: Keys of files that stay as they are, of a view.
        """
        self._sink = sink
        self._target = target
        self._settings = settings
        self._randomness = randomness
        self._max_bytes = max_bytes
        self._kept = kept

    def groups(self) -> list[Group]:
        """Groups of files to compact; changes nothing."""
        view = self._sink.view()
        if view.progress is None:
            raise ForeignTableError(f"{self._sink.name} has nothing: run the job first")
        return choose_groups(self._sink.files(view), self._settings, self._kept(view))

    def run(self, groups: Sequence[Group], runner: Mapper) -> Compacted:
        """Do it, wave by wave.

        Raises:
            CommitConflictError: Others commit faster than this can.
            TableUnavailableError, TaskFailedError: Worth another try.
        """
        done = Compacted()
        for wave in _waves(groups, self._max_bytes):
            done = done.plus(self._wave(wave, runner))
        return done

    def _wave(self, groups: Sequence[Group], runner: Mapper) -> Compacted:
        view = self._sink.view()
        assert view.progress is not None
        assert view.schema is not None
        tasks = [self._task(view.progress.topic, group) for group in groups]
        spec = RewriteSpec(self._target(), view.schema, self._settings.sort_by)
        results = runner.map(partial(rewrite, spec=spec), tasks)
        left_out = tuple(text for one in results for text in one.left_out)
        sizes = {file.key: file.size for group in groups for file in group.files}
        # A task that found fewer than two files to put together has changed nothing.
        worth = [one for one in results if len(one.done) > 1]
        self._discard([one for one in results if len(one.done) <= 1], view)
        done = self._commit(view, worth)
        replaced = [key for one in done for key in one.done]
        made = [file for one in done for file in one.files]
        return Compacted(
            len(replaced),
            sum(sizes[key] for key in replaced),
            len(made),
            sum(file.size for file in made),
            len(worth) - len(done),
            left_out,
        )

    def _task(self, topic: str, group: Group) -> RewriteTask:
        attempt = self._randomness.uuid4().hex
        names = CompactedNames(self._sink.folder, topic, group.topic_id_start, attempt)
        return RewriteTask(names, group.values, group.files)

    def _commit(self, view: TableView, results: Sequence[Rewritten]) -> Sequence[Rewritten]:
        """Those that are in the table now."""
        for _ in range(CONFLICTS_MAX):
            there = frozenset(self._sink.keys(view))
            if results and there.issuperset(_made(results)):
                # The commit was done, and the answer to it got lost.
                return results
            self._discard([one for one in results if not there.issuperset(one.done)], view)
            results = [one for one in results if there.issuperset(one.done)]
            if not results:
                return ()
            replaced = [key for one in results for key in one.done]
            try:
                self._sink.replace(view, [file for one in results for file in one.files], replaced)
            except CommitConflictError as error:
                LOGGER.info("%s; reading the table again", error)
                view = self._sink.view()
            else:
                return results
        self._discard(results, view)
        raise CommitConflictError(f"{self._sink.name} is changed all the time by another writer")

    def _discard(self, results: Sequence[Rewritten], view: TableView) -> None:
        """Remove files that the table refused; no commit names them."""
        if left := _made(results) - frozenset(self._sink.keys(view)):
            self._sink.store.delete(sorted(left))


def _made(results: Sequence[Rewritten]) -> frozenset[str]:
    return frozenset(file.key for one in results for file in one.files)


def _waves(groups: Sequence[Group], max_bytes: int) -> Iterator[list[Group]]:
    held: list[Group] = []
    size = 0
    for group in groups:
        if held and size + group.size > max_bytes:
            yield held
            held, size = [], 0
        held.append(group)
        size += group.size
    if held:
        yield held
