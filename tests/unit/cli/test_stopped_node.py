"""What a command does on a node's directories, and what keeps it from that."""

from pathlib import Path

import pytest

from broker.node.node_store import NodeStore
from cli.connection import CommandError
from cli.stopped_node import with_stopped_node
from config.broker import BrokerConfig
from storage.environment.local_filesystem import LocalFilesystem


async def node_id(node: NodeStore) -> int:
    return node.node_id


def test_nothing_is_done_while_a_broker_has_the_directories(tmp_path: Path) -> None:
    settings = BrokerConfig(log_dirs=(str(tmp_path),), node_id=7)
    lock = LocalFilesystem().lock(str(tmp_path / ".lock"))
    with pytest.raises(CommandError, match="another process"):
        with_stopped_node(settings, node_id)
    lock.release()
    assert with_stopped_node(settings, node_id) == 7


def test_errors_of_the_work_itself_are_not_changed(tmp_path: Path) -> None:
    async def fail(_node: NodeStore) -> None:
        raise LookupError("of the caller")

    with pytest.raises(LookupError, match="of the caller"):
        with_stopped_node(BrokerConfig(log_dirs=(str(tmp_path),)), fail)


def test_a_directory_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    """A mistyped `log.dirs` is said, and leaves nothing behind."""
    settings = BrokerConfig(log_dirs=(str(tmp_path / "typo"),))
    with pytest.raises(CommandError, match="there is no log directory"):
        with_stopped_node(settings, node_id)
    assert not (tmp_path / "typo").exists()
