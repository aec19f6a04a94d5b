"""Settings in the environment, as Kafka's container image takes them.

    KAFKA_LOG_DIRS                       log.dirs
    KAFKA_ADVERTISED_LISTENERS           advertised.listeners
    KAFKA_X__Y___Z                       x_y-z
    CLUSTER_ID                           cluster.id

`_` is `.`, `__` is `_`, `___` is `-`; case does not matter.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

_PREFIX = "KAFKA_"

_NO_SETTING = re.compile(
    r"KAFKA_(?:"
    # What Java images give the virtual machine, its logging and its start script.
    r"HEAP_OPTS|OPTS|JVM_PERFORMANCE_OPTS|GC_LOG_OPTS|DEBUG|LOG4J_.*|TOOLS_LOG4J_.*|JMX_.*|"
    r"JAVA_.*|HOME|VERSION|URL|DAEMON_NAME|KERB_.*|DEBUG_.*|DIST_URL|ASC_URL|"
    # What Kubernetes sets for a service called `kafka`.
    r"SERVICE_.*|PORT|PORT_.*"
    r")"
)


class Variable(NamedTuple):
    """A variable that is a setting."""

    name: str
    key: str
    value: str


def settings_of(environment: Mapping[str, str]) -> Iterator[Variable]:
    """Every variable that is a setting, in alphabetical order."""
    for name in sorted(environment):
        if name == "CLUSTER_ID":
            yield Variable(name, "cluster.id", environment[name])
        elif name.startswith(_PREFIX) and not _NO_SETTING.fullmatch(name):
            yield Variable(name, key_of(name), environment[name])


def key_of(name: str) -> str:
    """Setting's name of a variable's name, which starts with `KAFKA_`."""
    parts = re.split("(_+)", name.removeprefix(_PREFIX).lower())
    return "".join(_separator(part) if part.startswith("_") else part for part in parts)


def _separator(underscores: str) -> str:
    """Longest first, from the left: `____` is `-.`."""
    whole, rest = divmod(len(underscores), 3)
    return "-" * whole + ("", ".", "_")[rest]
