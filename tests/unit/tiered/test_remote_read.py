"""What a read gives."""

from storage.types.file_slice import FileSlice
from tiered.remote_read import RemoteRecords


def test_the_length_is_that_of_all_slices() -> None:
    records = RemoteRecords((FileSlice(None, 5, 10), FileSlice(None, 0, 7)), ((9, 1),))
    assert records.length == 17
    assert [slice_.length for slice_ in records.slices] == [10, 7]
    assert records.aborted == [(9, 1)]


def test_nothing_is_empty() -> None:
    assert RemoteRecords((), ()).length == 0
