"""Settings of each broker of a machine, made from those that the supervisor was given.

node.id                   consecutive from the configured one
listeners                 ports consecutive from the configured ones, likewise advertised
log.dirs                  a folder `broker-<node id>` in each; caches with a path likewise
broker.rack               the machine's name, where none is set: replicas go to other machines
metadata.store            the supervisor's, where the configured one is a node's own file
rsm.config.storage.root   one for all, in the first log directory, where none is set
admin.listener            any port of the loopback interface: the supervisor has the configured
"""

import os
from collections import Counter
from collections.abc import Iterable
from posixpath import join
from typing import Final, NamedTuple

from broker.runtime.startup_errors import StartupError
from config.broker import BROKER_KEYS, BrokerConfig
from config.cache_paths import OBJECTS_DIRECTORY
from config.listeners import Listener
from config.load import LoadedConfig, Source
from config.sections.remote_storage import S3
from storage.checkpoints.brokers_note import broker_folder

BROKERS_MAX: Final = 64
"""Each is a process with memory, descriptors and caches of its own."""

STORE_FOLDER: Final = "varve-store"
"""Folder of the shared metadata store."""

PORT_MAX: Final = 65_535

_CACHE_PATHS: Final = ("tier.index.cache.path", "rsm.config.fetch.chunk.cache.path")
_METADATA_REPLICAS: Final = "rlmm.config.remote.log.metadata.topic.replication.factor"


class BrokerPlan(NamedTuple):
    """One broker.

    Attributes:
        node_id: Its number.
        settings: Key to text; they override what the supervisor was given.
    """

    node_id: int
    settings: dict[str, str]

    @property
    def words(self) -> list[str]:
        """Options of its command line."""
        return [
            word for key, value in self.settings.items() for word in ("--set", f"{key}={value}")
        ]


def log_directories(settings: BrokerConfig) -> list[str]:
    """Absolute paths of `log.dirs`."""
    return list(map(os.path.abspath, settings.log_dirs))


def store_directory(settings: BrokerConfig) -> str:
    """Absolute path of the shared metadata store's folder."""
    home = settings.metadata_log_dir or settings.log_dirs[0]
    return join(os.path.abspath(home), STORE_FOLDER)


def plan_brokers(
    loaded: LoadedConfig, count: int, *, store_address: str, machine_name: str
) -> list[BrokerPlan]:
    """One plan for each broker, by ascending node id.

    Args:
        loaded: What the supervisor was given.
        count: How many brokers.
        store_address: What they have as `metadata.store`.
        machine_name: Their rack, where none is set.

    Raises:
        StartupError: They cannot have these settings side by side.
    """
    if count > BROKERS_MAX:
        raise StartupError(f"--brokers {count}: {BROKERS_MAX} are the most")
    settings = loaded.broker
    set_by_operator = {one.row.name for one in loaded.settings if one.source is not Source.DEFAULT}
    _check_ports(settings, count)
    plans = []
    for index in range(count):
        node_id = settings.node_id + index
        folder = broker_folder(node_id)
        own = {
            "node.id": str(node_id),
            "listeners": _moved(settings.listeners, index),
            "log.dirs": ",".join(join(path, folder) for path in log_directories(settings)),
            "metadata.store": store_address,
            # The shared store lies there; a broker has none of its own.
            "metadata.log.dir": "",
            "broker.rack": settings.broker_rack or machine_name,
            "admin.listener": "" if settings.admin_listener is None else "127.0.0.1:0",
        }
        if settings.broker_id != -1:
            own["broker.id"] = str(node_id)
        if settings.advertised_listeners:
            own["advertised.listeners"] = _moved(settings.advertised_listeners, index)
        for key in _CACHE_PATHS:
            path = getattr(settings, BROKER_KEYS[key].field_name)
            if path is not None:
                own[key] = join(path, folder)
        if not settings.metadata_store.is_shared:
            own |= _of_one_machine(settings, set_by_operator)
        plans.append(BrokerPlan(node_id, own))
    return plans


def _of_one_machine(settings: BrokerConfig, set_by_operator: set[str]) -> dict[str, str]:
    """What goes for brokers whose cluster is this machine."""
    own = {}
    if _METADATA_REPLICAS not in set_by_operator:
        # As of all other topics: further copies on the same machine survive nothing more.
        own[_METADATA_REPLICAS] = "1"
    is_directory = settings.rsm_config_storage_backend_class != S3
    if is_directory and not settings.rsm_config_storage_root:
        own["rsm.config.storage.root"] = join(log_directories(settings)[0], OBJECTS_DIRECTORY)
    return own


def _moved(listeners: Iterable[Listener], by: int) -> str:
    """The listeners' text with other ports; port 0 stays: the system chooses."""
    return ",".join(
        str(Listener(one.name, one.host, one.port + by if one.port else 0)) for one in listeners
    )


def _check_ports(settings: BrokerConfig, count: int) -> None:
    ports = [one.port + index for one in settings.listeners if one.port for index in range(count)]
    if max(ports, default=0) > PORT_MAX:
        raise StartupError(f"--brokers {count}: listeners need ports up to {max(ports)}")
    if settings.admin_listener is not None and settings.admin_listener.port:
        ports.append(settings.admin_listener.port)
    double = [port for port, times in Counter(ports).items() if times > 1]
    if double:
        raise StartupError(
            f"--brokers {count}: port {min(double)} is needed twice, as each listener takes "
            f"{count} consecutive ports: choose listeners that are as far apart"
        )
