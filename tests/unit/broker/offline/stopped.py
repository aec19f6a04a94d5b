"""A stopped node on real files with topics, for tests of what commands do to it."""

from pathlib import Path
from uuid import UUID

from broker.controller.controller import Controller
from broker.controller.topics.topics import NewTopic
from broker.node.node_directories import NodeDirectories
from broker.node.stopped_node import stopped_node
from config.broker import BrokerConfig
from storage.checkpoints.clean_shutdown import write_clean_shutdown
from storage.environment.alerts import Alerts
from storage.environment.local_filesystem import LocalFilesystem
from storage.environment.randomness import SystemRandomness
from storage.manager.log_manager import LogManager

NODE = 4


def settings_of(tmp_path: Path, *names: str) -> BrokerConfig:
    """Of a node with these log directories, by default one."""
    directories = tuple(str(tmp_path / name) for name in names or ("a",))
    return BrokerConfig().replace(log_dirs=directories, node_id=NODE)


async def make_node(
    settings: BrokerConfig, *topics: str, partitions: int = 2, clean: bool = True
) -> None:
    """A node that has run, made topics, and stopped."""
    filesystem = LocalFilesystem()
    async with stopped_node(settings) as node:
        store = await node.open()
        controller = await Controller.open(store, settings, randomness=SystemRandomness())
        manager = LogManager(node.environment, list(settings.log_dirs))
        manager.directories[:] = list(node.log_directories)
        directories = NodeDirectories(controller, manager, Alerts(), node.environment.run_blocking)
        await directories.claim(node.store_id)
        last = node.log_directories[-1].id
        controller.place_by(lambda: lambda _one: last)
        await controller.create_topics([NewTopic(name, partitions, 1) for name in topics])
        await controller.allocate_producer_ids()
        await controller.aclose()
        await store.aclose()
    if clean:
        for path in settings.log_dirs:
            write_clean_shutdown(filesystem, path)


def store_ids(settings: BrokerConfig) -> set[UUID | None]:
    """What the directories name as their store."""
    from storage.checkpoints.meta_properties import read_meta_properties

    found = [
        read_meta_properties(LocalFilesystem(), f"{path}/meta.properties")
        for path in settings.log_dirs
    ]
    return {None if one is None else one.store_id for one in found}
