"""Which files are put together."""

from collections.abc import Sequence

from pipeline.lake.files.data_file import CompactedNames, FileNames
from pipeline.lake.maintain.groups import Group, GroupSettings, choose_groups
from pipeline.lake.sinks.base import TableFile
from tests.fakes.lake.numbers_log import TOPIC_ID

SETTINGS = GroupSettings(target_bytes=1000, small_bytes=500, min_files=3)


def file(number: int, size: int = 100, *, day: str = "", sealed: str = "") -> TableFile:
    values = (("timestamp_day", day),) if day else ()
    key = FileNames("", "orders", TOPIC_ID, 0, number, number + 1, "0a1b2c3d").key(values, 0)
    return TableFile(key, size, 1, values, number, number * 10, sealed)


def times(groups: Sequence[Group]) -> list[list[int]]:
    return [[one.first_offset for one in group.files] for group in groups]


def test_small_files_make_groups_of_the_target_by_time() -> None:
    files = [file(number) for number in reversed(range(23))]
    assert times(choose_groups(files, SETTINGS)) == [
        list(range(10)),
        list(range(10, 20)),
        [20, 21, 22],
    ]


def test_few_files_stay_unless_they_are_as_good_as_whole() -> None:
    assert choose_groups([file(1), file(2)], SETTINGS) == []
    full = [file(1, 499), file(2, 499), file(3, 499)]
    assert times(choose_groups(full, SETTINGS)) == [[1, 2]]


def test_large_files_stay() -> None:
    assert choose_groups([file(number, 500) for number in range(9)], SETTINGS) == []


def test_parts_of_a_table_are_never_mixed() -> None:
    files = [file(number, day=f"2026-01-0{number % 2 + 1}") for number in range(8)]
    groups = choose_groups(files, SETTINGS)
    assert sorted(times(groups)) == [[0, 2, 4, 6], [1, 3, 5, 7]]
    assert all({one.values for one in group.files} == {group.values} for group in groups)


def test_rows_of_two_incarnations_are_never_mixed() -> None:
    """Their offsets are other records; a file's name alone tells which they are."""
    old = CompactedNames("", "orders", "00000000", "f" * 32)
    files = [file(number) for number in range(3)]
    files += [file(number)._replace(key=old.key((), number)) for number in range(3)]
    groups = choose_groups(files, SETTINGS)
    assert sorted(group.topic_id_start for group in groups) == ["00000000", TOPIC_ID.hex[:8]]


def test_what_nobody_knows_all_of_stays() -> None:
    strangers = [file(number)._replace(key=f"{number}.parquet") for number in range(9)]
    assert choose_groups(strangers, SETTINGS) == []
    assert choose_groups([file(n, sealed="deleted rows") for n in range(9)], SETTINGS) == []
    files = [file(number) for number in range(4)]
    kept = frozenset([files[0].key])
    assert times(choose_groups(files, SETTINGS, kept)) == [[1, 2, 3]]


def test_files_of_key_buckets_stay() -> None:
    """A keyed table finds its keys by them."""
    name = "part-orders-6f2b5a52-bucket-00001-00000000000000000001-0a1b2c3d-0000{}.parquet"
    files = [file(number)._replace(key=name.format(number)) for number in range(9)]
    assert choose_groups(files, SETTINGS) == []


def test_groups_by_offset_are_of_neighbours_by_offset() -> None:
    files = [file(number)._replace(time_us=-number) for number in range(12)]
    by_offset = SETTINGS._replace(sort_by="offset")
    assert times(choose_groups(files, by_offset)) == [list(range(10))]
    assert times(choose_groups(files, SETTINGS)) == [list(range(11, 1, -1))]
