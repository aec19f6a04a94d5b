"""The note that a metadata store was copied to a cluster."""

from broker.node.moved_note import MOVED_FILE, MovedNote, read_moved_note, write_moved_note
from config.broker import BrokerConfig
from tests.fakes.filesystem import FakeFilesystem

NOTE = MovedNote("etcd://a:1", "/p/")


def test_it_comes_back_as_it_was_written() -> None:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    assert read_moved_note(filesystem, "/d") is None
    write_moved_note(filesystem, "/d", NOTE)
    assert read_moved_note(filesystem, "/d") == NOTE


def test_one_that_does_not_parse_still_keeps_the_node_from_starting() -> None:
    filesystem = FakeFilesystem()
    filesystem.mkdir("/d")
    filesystem.replace_bytes(f"/d/{MOVED_FILE}", b"{")
    assert read_moved_note(filesystem, "/d") is not None


def test_the_refusal_names_both_ways() -> None:
    text = NOTE.refusal("/d")
    assert "metadata.store=etcd://a:1 and metadata.store.prefix=/p/." in text
    assert "`varve metadata copy --from etcd://a:1 --to sqlite:/d --prefix /p/`" in text


def test_the_usual_prefix_need_not_be_given() -> None:
    text = MovedNote("etcd://a:1", BrokerConfig().metadata_store_prefix).refusal("/d")
    assert "start it with metadata.store=etcd://a:1. To" in text
    assert "`varve metadata copy --from etcd://a:1 --to sqlite:/d`" in text
