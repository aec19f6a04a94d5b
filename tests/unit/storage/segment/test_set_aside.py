"""Segments set aside: told of until somebody acts, and put back."""

from posixpath import join

from config.topic import TopicConfig
from storage.environment.alerts import AlertKind
from storage.manager.log_manager import LogManager
from tests.unit.storage.log.log_model import read_records, small_segments
from tests.unit.storage.manager.log_disk import A0, ID_A, Disk, append

DELETE = small_segments(600)


def filled(disk: Disk, config: TopicConfig, keys: int) -> LogManager:
    manager = disk.started(config)
    disk.filesystem.sync_directory("/")
    log = manager.creation.get_or_create(A0, ID_A, config)
    for number in range(60):
        append(log, key=b"%d" % (number % keys), value=b"v" * 40)
    return manager


def damaged(disk: Disk) -> LogManager:
    """A broker whose log lost all but its first segment to one byte."""
    manager = filled(disk, DELETE, 60)
    log = manager.get(A0)
    assert log is not None
    path = log.segment_facts()[1].path
    data = bytearray(disk.filesystem.peek(path))
    data[-1] ^= 1
    for each in log.segment_facts():
        each.open_file().sync()
    disk.filesystem.poke(path, bytes(data))
    disk.filesystem.sync_directory("/one/a-0")
    disk.filesystem.sync_directory("/one")
    disk.filesystem = disk.filesystem.after_crash()
    return disk.started(DELETE)


def alerts_of(manager: LogManager) -> list[str]:
    return [a.text for a in manager.alerts.all() if a.kind is AlertKind.SEGMENTS_SET_ASIDE]


def test_set_aside_segments_are_told_of_until_somebody_removes_them() -> None:
    """In the operator's words, at each start; neither retention nor size sees them."""
    disk = Disk()
    manager = damaged(disk)
    log = manager.get(A0)
    assert log is not None
    (folder,) = log.set_aside
    held = sum(entry.size for entry in disk.filesystem.list_directory(folder))
    (text,) = alerts_of(manager)
    assert folder in text
    assert "varve dump-log" in text
    assert log.size() == sum(segment.size for segment in log.segment_facts()) < held
    log.retention.delete_old_segments()
    manager.deletion.remove_deleted()
    assert alerts_of(manager) == [text]
    manager.shutdown()
    manager = disk.started(DELETE)
    assert alerts_of(manager) == [text]
    assert sum(entry.size for entry in disk.filesystem.list_directory(folder)) == held
    disk.filesystem.rmtree(folder)
    manager.deletion.remove_deleted()
    assert alerts_of(manager) == []


def test_set_aside_segments_leave_with_their_topic() -> None:
    """The alert too."""
    disk = Disk()
    manager = damaged(disk)
    assert len(alerts_of(manager)) == 1
    manager.deletion.delete(A0)
    manager.deletion.remove_deleted()
    assert alerts_of(manager) == []
    disk.clock.advance(120_000)
    manager.deletion.remove_deleted()
    assert not any("a-0" in entry.name for entry in disk.filesystem.list_directory("/one"))


def test_segments_that_were_set_aside_can_be_put_back() -> None:
    """As the alert says, while the log ends before them."""
    disk = Disk()
    manager = damaged(disk)
    log = manager.get(A0)
    assert log is not None
    (folder,) = log.set_aside
    end = log.log_end_offset
    manager.shutdown()
    for entry in disk.filesystem.list_directory(folder):
        disk.filesystem.rename(join(folder, entry.name), join("/one/a-0", entry.name))
    disk.filesystem.rmtree(folder)
    manager = disk.started(DELETE)
    again = manager.get(A0)
    assert again is not None
    assert again.log_end_offset == 60
    assert alerts_of(manager) == []
    offsets = [record.offset for record in read_records(again)]
    assert offsets[:end] == list(range(end))
    assert offsets[-1] == 59
    append(again)
    assert again.log_end_offset == 61
    # The gap is meant, also at all later starts.
    manager.shutdown()
    later = disk.started(DELETE).get(A0)
    assert later is not None
    assert [record.offset for record in read_records(later)] == [*offsets, 60]
