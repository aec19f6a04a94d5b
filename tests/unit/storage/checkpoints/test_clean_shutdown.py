"""The clean-shutdown marker."""

from storage.checkpoints.clean_shutdown import (
    read_broker_epoch,
    take_clean_shutdown,
    write_clean_shutdown,
)
from tests.fakes.filesystem import FakeFilesystem


def test_bytes_are_kafkas() -> None:
    """JSON without blanks."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    write_clean_shutdown(filesystem, "/d", 9)
    assert filesystem.peek("/d/.kafka_cleanshutdown") == b'{"version":0,"brokerEpoch":9}'


def test_marker_counts_once_even_after_a_crash() -> None:
    """A start takes it durably: a crash during the start is no clean shutdown (KAFKA-10471)."""
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.sync_directory("/")
    write_clean_shutdown(filesystem, "/d")
    assert take_clean_shutdown(filesystem, "/d")
    for keep in (None, "all"):
        assert not take_clean_shutdown(filesystem.after_crash(keep), "/d")
    assert not take_clean_shutdown(filesystem, "/d")


def test_broker_epoch() -> None:
    """Any other content tells none."""
    assert read_broker_epoch(b'{"version":0,"brokerEpoch":9}') == 9
    for data in (b"", b"{", b"[]", b'{"brokerEpoch":"x"}', b"\xff"):
        assert read_broker_epoch(data) is None
