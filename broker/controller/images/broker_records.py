"""What the metadata store says of brokers: registrations, lives, fences, and who is controller.

    key              value                                                             written by
    brokers/<id>     {"v": 1, "incarnation": <id>, "listeners": {<name>: [host, port]},  itself
                     "rack": ..., "features": {<name>: [least, highest]},
                     "directories": [<id>, ...], "release": ..., "ended": ...}
    live/<id>        {"v": 1, "incarnation": <id>}, under the broker's lease           itself
    draining/<id>    {"v": 1, "epoch": <broker epoch>}, under its lease                itself
    fences/<id>      {"v": 1, "epoch": <broker epoch that is let in, or 0>,            controller
                     "why": <why none is>}
    suspects/<id>/<by>   {"v": 1, "epoch": <broker epoch>}, under the lease of <by>    <by>
    offline/<id>     {"v": 1, "epoch": <broker epoch>, "directories": [<id>, ...],     itself
                     "full": [<id>, ...]}: log directories that have failed since it
                     registered, and those that have no room now
    controller       {"v": 1, "node": <id>, "epoch": <broker epoch>}, under the        controller
                     controller's lease

`brokers/<id>` is written once in a life of the process: its revision is the **broker epoch**. The
incarnation is random and says which life a `live/<id>` belongs to: a process that has lost its
lease puts the same one again, and keeps its epoch. The `controller` key's create revision is the
**controller epoch**.
"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple
from uuid import UUID

from broker.controller.images.features import SupportedRange
from broker.controller.images.metadata_records import (
    BROKERS,
    CONTROLLER_KEY,
    DRAINING,
    FENCES,
    LIVE,
    OFFLINE,
    SUSPECTS,
    MetadataFormatError,
    decode_record,
    encode_record,
)
from storage.types.uuid_text import NIL, format_uuid, parse_uuid

BROKER_KEYS: Final = (BROKERS, LIVE, DRAINING, FENCES, SUSPECTS, OFFLINE)
"""Prefixes of the keys that belong to one broker each."""


@dataclass(frozen=True, slots=True)
class BrokerEndpoint:
    """Host and port that are advertised to clients of one listener."""

    host: str
    port: int


class LastRun(enum.Enum):
    """How the broker's process before this one ended.

    Only after `UNKNOWN` may its logs lack what they had (KIP-966).
    """

    CLEAN = "clean"
    SAME_BOOT = "same-boot"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class BrokerRegistration:
    """What a broker says of itself when it starts.

    Attributes:
        incarnation: Random, of this life of the process.
        listeners: Listener name to what is advertised there.
        features: What it can work at, by name.
        directories: Ids of its log directories that work (KIP-858), in the order of `log.dirs`.
        release: Of Varve.
        ended: How the process before ended.
    """

    incarnation: UUID
    listeners: Mapping[str, BrokerEndpoint]
    rack: str | None = None
    features: Mapping[str, SupportedRange] = field(default_factory=dict)
    directories: tuple[UUID, ...] = ()
    release: str = ""
    ended: LastRun = LastRun.UNKNOWN


class FailedDirectories(NamedTuple):
    """Log directories that have failed in one life of a broker (KIP-858), or have no room."""

    epoch: int
    directories: tuple[UUID, ...]
    full: tuple[UUID, ...] = ()


class Fence(NamedTuple):
    """The controller's word about a broker: the epoch that is let in; 0: none, and why."""

    epoch: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class BrokerImage:
    """One broker.

    Attributes:
        listeners: Listener name to what is advertised there.
        is_fenced: The controller has not let this epoch in: it takes no part in anything.
        epoch: Names a life of the process; 0 on a single node.
        is_draining: It wants to stop, and is to lead nothing.
        is_live: It holds its lease. One without is fenced by the controller before long.
        registration: All that it said of itself; None on a single node.
        failed_directories: Those of its log directories that have failed since it registered; on
            a single node those that are missing or have failed.
        full_directories: Those that have no room: what lies there is read, and not written to.
    """

    node_id: int
    listeners: Mapping[str, BrokerEndpoint]
    rack: str | None = None
    is_fenced: bool = False
    epoch: int = 0
    is_draining: bool = False
    is_live: bool = True
    registration: BrokerRegistration | None = None
    failed_directories: tuple[UUID, ...] = ()
    full_directories: tuple[UUID, ...] = ()

    def has_online(self, directory_id: UUID) -> bool:
        """Whether a replica in one of its log directories can be served.

        One whose directory is not known is taken to be.
        """
        if directory_id == NIL:
            return True
        registered = self.registration
        return directory_id not in self.failed_directories and (
            registered is None or directory_id in registered.directories
        )

    @property
    def ended(self) -> str:
        """How the process before ended, as `LastRun` names it; on a single node "clean"."""
        return LastRun.CLEAN.value if self.registration is None else self.registration.ended.value


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """What the keys of one broker hold, each as it was last written.

    Attributes:
        epoch: Revision of the registration; 0 without one.
        live: Incarnation that holds a lease; None: none does.
        draining: Broker epoch that wants to stop; 0: none.
        suspected_by: Brokers that say that it is dead, each with the broker epoch that it means;
            its own word says that it lives.
        failed: Log directories that have failed, and in which life.
    """

    registration: BrokerRegistration | None = None
    epoch: int = 0
    live: UUID | None = None
    draining: int = 0
    fence: Fence | None = None
    suspected_by: tuple[tuple[int, int], ...] = ()
    failed: FailedDirectories | None = None

    def changed(self, kind: str, key: str, value: bytes | None, revision: int) -> "BrokerFacts":
        """The same after one of the keys has changed, None: is deleted.

        Raises:
            MetadataFormatError: Damaged or newer.
        """
        if kind == BROKERS:
            if value is None:
                return replace(self, registration=None, epoch=0)
            return replace(self, registration=decode_registration(key, value), epoch=revision)
        if kind == LIVE:
            return replace(self, live=None if value is None else decode_live(key, value))
        if kind == DRAINING:
            return replace(self, draining=0 if value is None else decode_draining(key, value))
        if kind == OFFLINE:
            return replace(self, failed=None if value is None else decode_failed(key, value))
        if kind == SUSPECTS:
            by = parse_suspicion_key(key)
            others = [pair for pair in self.suspected_by if pair[0] != by]
            if value is not None:
                others.append((by, _number(key, value, "epoch")))
            return replace(self, suspected_by=tuple(sorted(others)))
        return replace(self, fence=None if value is None else decode_fence(key, value))

    def image(self, node_id: int) -> BrokerImage | None:
        """What the cluster sees; None: it is not registered."""
        said = self.registration
        if said is None:
            return None
        return BrokerImage(
            node_id,
            said.listeners,
            said.rack,
            is_fenced=self.fence != Fence(self.epoch),
            epoch=self.epoch,
            is_draining=self.draining == self.epoch,
            is_live=self.live == said.incarnation,
            registration=said,
            failed_directories=(
                self.failed.directories if self.failed and self.failed.epoch == self.epoch else ()
            ),
            full_directories=(
                self.failed.full if self.failed and self.failed.epoch == self.epoch else ()
            ),
        )


NO_FACTS: Final = BrokerFacts()


def broker_key(node_id: int) -> str:
    """Key of a broker's registration."""
    return f"{BROKERS}{node_id}"


def live_key(node_id: int) -> str:
    """Key that a broker holds under its lease."""
    return f"{LIVE}{node_id}"


def draining_key(node_id: int) -> str:
    """Key of a broker that wants to stop."""
    return f"{DRAINING}{node_id}"


def fence_key(node_id: int) -> str:
    """Key of the controller's word about a broker."""
    return f"{FENCES}{node_id}"


def offline_key(node_id: int) -> str:
    """Key of a broker's log directories that have failed."""
    return f"{OFFLINE}{node_id}"


def encode_failed(failed: FailedDirectories) -> bytes:
    """Value of a broker's failed log directories."""
    return encode_record(
        {
            "epoch": failed.epoch,
            "directories": list(map(format_uuid, failed.directories)),
            "full": list(map(format_uuid, failed.full)),
        }
    )


def decode_failed(key: str, value: bytes) -> FailedDirectories:
    """Failed log directories.

    Raises:
        MetadataFormatError: Damaged or newer.
    """
    try:
        fields = decode_record(key, value)
        ids = tuple(map(parse_uuid, fields["directories"]))
        full = tuple(map(parse_uuid, fields.get("full", ())))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MetadataFormatError(f"{key}: {error!r}") from error
    return FailedDirectories(_number(key, value, "epoch"), ids, full)


def suspicion_key(node_id: int, by: int | None = None) -> str:
    """Key of what broker `by` says of another; None: prefix of what all say of it."""
    return f"{SUSPECTS}{node_id}/{'' if by is None else by}"


def parse_suspicion_key(key: str) -> int:
    """Who says it.

    Raises:
        MetadataFormatError: Not such a key.
    """
    try:
        return int(key.removeprefix(SUSPECTS).partition("/")[2])
    except ValueError as error:
        raise MetadataFormatError(f"{key}: {error}") from error


def encode_suspicion(epoch: int) -> bytes:
    """Value of a suspicion: the broker epoch that is over."""
    return encode_record({"epoch": epoch})


def parse_broker_key(key: str) -> tuple[str, int]:
    """The prefix and the broker's id.

    Raises:
        MetadataFormatError: Not such a key.
    """
    for prefix in BROKER_KEYS:
        if key.startswith(prefix):
            name = key.removeprefix(prefix)
            try:
                return prefix, int(name.partition("/")[0] if prefix == SUSPECTS else name)
            except ValueError as error:
                raise MetadataFormatError(f"{key}: {error}") from error
    raise MetadataFormatError(f"{key}: not a broker's")


def encode_registration(registration: BrokerRegistration) -> bytes:
    """Value of a registration."""
    return encode_record(
        {
            "incarnation": format_uuid(registration.incarnation),
            "listeners": {
                name: [endpoint.host, endpoint.port]
                for name, endpoint in registration.listeners.items()
            },
            "rack": registration.rack,
            "features": {name: list(levels) for name, levels in registration.features.items()},
            "directories": list(map(format_uuid, registration.directories)),
            "release": registration.release,
            "ended": registration.ended.value,
        }
    )


def decode_registration(key: str, value: bytes) -> BrokerRegistration:
    """A registration.

    Raises:
        MetadataFormatError: Damaged or newer.
    """
    fields = decode_record(key, value)
    try:
        rack = fields["rack"]
        return BrokerRegistration(
            parse_uuid(fields["incarnation"]),
            {
                str(name): BrokerEndpoint(str(host), int(port))
                for name, (host, port) in fields["listeners"].items()
            },
            None if rack is None else str(rack),
            {
                str(name): SupportedRange(int(least), int(highest))
                for name, (least, highest) in fields["features"].items()
            },
            tuple(map(parse_uuid, fields["directories"])),
            str(fields["release"]),
            LastRun(fields["ended"]),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MetadataFormatError(f"{key}: {error!r}") from error


def encode_live(incarnation: UUID) -> bytes:
    """Value of a live key."""
    return encode_record({"incarnation": format_uuid(incarnation)})


def decode_live(key: str, value: bytes) -> UUID:
    """The incarnation that lives.

    Raises:
        MetadataFormatError: Damaged or newer.
    """
    try:
        return parse_uuid(decode_record(key, value)["incarnation"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise MetadataFormatError(f"{key}: {error!r}") from error


def encode_draining(epoch: int) -> bytes:
    """Value of a draining key."""
    return encode_record({"epoch": epoch})


def decode_draining(key: str, value: bytes) -> int:
    """The broker epoch that wants to stop.

    Raises:
        MetadataFormatError: Damaged or newer.
    """
    return _number(key, value, "epoch")


def encode_fence(epoch: int, why: str = "") -> bytes:
    """Value of a fence."""
    return encode_record({"epoch": epoch, "why": why})


def decode_fence(key: str, value: bytes) -> Fence:
    """A fence.

    Raises:
        MetadataFormatError: Damaged or newer.
    """
    return Fence(_number(key, value, "epoch"), str(decode_record(key, value).get("why", "")))


def encode_controller(node_id: int, broker_epoch: int) -> bytes:
    """Value of the controller's key."""
    return encode_record({"node": node_id, "epoch": broker_epoch})


def decode_controller(value: bytes) -> int:
    """The controller's node id.

    Raises:
        MetadataFormatError: Damaged or newer.
    """
    return _number(CONTROLLER_KEY, value, "node")


def _number(key: str, value: bytes, name: str) -> int:
    try:
        return int(decode_record(key, value)[name])
    except (KeyError, TypeError, ValueError) as error:
        raise MetadataFormatError(f"{key}: {error!r}") from error
