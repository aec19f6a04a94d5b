"""A stopped node's directories, for commands."""

from pathlib import Path

import pytest

from broker.node.stopped_node import metadata_directory_of, stopped_node
from config.broker import BrokerConfig
from storage.environment.local_filesystem import LocalFilesystem
from storage.errors import LockedDirectoryError


async def test_its_directories_are_locked_meanwhile(tmp_path: Path) -> None:
    """The one of the metadata too."""
    settings = BrokerConfig().replace(
        log_dirs=(str(tmp_path / "a"),), metadata_log_dir=str(tmp_path / "m")
    )
    async with stopped_node(settings) as node:
        for name in ("a", "m"):
            with pytest.raises(LockedDirectoryError):
                LocalFilesystem().lock(str(tmp_path / name / ".lock"))
        await (await node.open()).aclose()
    assert node.path == str(tmp_path / "m" / "varve-metadata.sqlite")
    for name in ("a", "m"):
        LocalFilesystem().lock(str(tmp_path / name / ".lock")).release()


def test_a_metadata_directory_among_the_others_is_not_one_more() -> None:
    """It would be locked twice."""
    settings = BrokerConfig().replace(log_dirs=("/a", "/b"), metadata_log_dir="/b")
    assert metadata_directory_of(settings, LocalFilesystem()) is None
    assert metadata_directory_of(BrokerConfig(), LocalFilesystem()) is None
