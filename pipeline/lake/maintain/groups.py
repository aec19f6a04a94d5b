"""Groups of files to compact: small ones of the same partition of a table, up to one large file.

    files of one topic id and one set of partition values, below `small_bytes`, by time or offset
      ─> groups of at most `target_bytes`
      ─> those of `min_files` files or more, and those that are as good as full

Left alone: files that no job named (the topic id of their rows is unknown), files that
another writer has marked deletions for, and what a replay of the quarantine wrote as long as the
quarantine holds the range it came from (`Replay` finds it by name).
"""

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from pipeline.lake.files.data_file import bucket_of, incarnation_of
from pipeline.lake.maintain.sort_order import SortBy
from pipeline.lake.sinks.base import TableFile

FILES_MAX: Final = 10_000
"""Of one group: bounds the description of a task."""

Part: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]


class Group(NamedTuple):
    """Files that become one.

    Attributes:
        topic_id_start: Of their rows.
        values: Of the fields the table is partitioned by.
        files: In the order of `sort_by`.
    """

    topic_id_start: str
    values: tuple[tuple[str, str], ...]
    files: tuple[TableFile, ...]

    @property
    def size(self) -> int:
        """Bytes of the files."""
        return sum(file.size for file in self.files)


class GroupSettings(NamedTuple):
    """See `MaintainConfig`."""

    target_bytes: int
    small_bytes: int
    min_files: int
    sort_by: SortBy = "timestamp"


def choose_groups(
    files: Iterable[TableFile], settings: GroupSettings, kept: frozenset[str] = frozenset()
) -> list[Group]:
    """Groups worth compacting, the partition of the table with the most files first.

    Args:
        files: Of the table.
        settings: When it is worth it.
        kept: Keys of files that stay as they are.
    """
    parts: dict[Part, list[TableFile]] = {}
    for file in files:
        topic_id_start = incarnation_of(file.key)
        if (
            topic_id_start is None
            or bucket_of(file.key) is not None
            or file.size >= settings.small_bytes
            or file.sealed
            or file.key in kept
        ):
            continue
        parts.setdefault((topic_id_start, file.values), []).append(file)
    groups: list[Group] = []
    for (topic_id_start, values), some in sorted(
        parts.items(), key=lambda item: (-len(item[1]), item[0])
    ):
        some.sort(key=lambda file: _place(file, settings.sort_by))
        groups.extend(
            Group(topic_id_start, values, tuple(chosen)) for chosen in _filled(some, settings)
        )
    return groups


def _place(file: TableFile, by: SortBy) -> tuple[int, int, str]:
    if by == "offset":
        return file.first_offset, file.time_us, file.key
    return file.time_us, file.first_offset, file.key


def _filled(files: Sequence[TableFile], settings: GroupSettings) -> Iterable[list[TableFile]]:
    held: list[TableFile] = []
    size = 0
    for file in files:
        if held and (size + file.size > settings.target_bytes or len(held) == FILES_MAX):
            if len(held) > 1:
                yield held
            held, size = [], 0
        held.append(file)
        size += file.size
    if len(held) >= settings.min_files:
        yield held
