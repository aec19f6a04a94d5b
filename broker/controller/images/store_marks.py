"""Marks in a cluster's store: how its contents came there, when no controller wrote them.

    key                value                                                  written by
    cluster/origin     {"v": 1, "state": "copying" | "copied" | "left",       varve metadata copy
                        "store": <id of the node's store>, "node": <node id>}
    cluster/recovery   {"v": 1, "state": "recovering" | "recovered",          varve cluster
                        "replaces": [<incarnation>, ...],                     recover-metadata
                        "brokers": {<node id>: [<last broker epoch>,
                                                <directory id>, ...]}}

`copying` and `recovering` are written before anything else and end with the last transaction: what
is between is half of a cluster's state, and no broker takes it for whole. `left` says that the
contents are a single node's again.

Log directories name the incarnation that they belong to. After a recovery those that it has read
belong to the new one, though they name one that it replaces; no others do: they may have been
written to in later leader epochs than the recovery has seen.
"""

import enum
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from uuid import UUID

from broker.controller.images.metadata_records import (
    MetadataFormatError,
    decode_record,
    encode_record,
)
from broker.controller.store.metadata_store import KeyValue, MetadataStore, StoreError
from storage.types.uuid_text import format_uuid, parse_uuid

ORIGIN_KEY: Final = "cluster/origin"
RECOVERY_KEY: Final = "cluster/recovery"


class UnfinishedStoreError(StoreError):
    """The store's contents are not a cluster's, or not all of them: no broker acts on them."""


class OriginState(enum.Enum):
    """How far a copy from, or to, a single node is."""

    COPYING = "copying"
    COPIED = "copied"
    LEFT = "left"


class RecoveryState(enum.Enum):
    """How far a recovery is."""

    RECOVERING = "recovering"
    RECOVERED = "recovered"


@dataclass(frozen=True, slots=True)
class Origin:
    """A store that was copied from, or to, that of a single node.

    Attributes:
        store_id: Of the single node's store.
        node_id: Of the node.
    """

    state: OriginState
    store_id: UUID
    node_id: int

    def encode(self) -> bytes:
        """Value of its key."""
        return encode_record(
            {"state": self.state.value, "store": format_uuid(self.store_id), "node": self.node_id}
        )


class RecoveredBroker(NamedTuple):
    """What a recovery has read of one broker.

    Attributes:
        epoch: Of its last life, as its directories name it; 0: they do not.
        directories: Their ids.
    """

    epoch: int
    directories: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class Recovery:
    """A store that was filled from what log directories say.

    Attributes:
        replaces: Incarnations of the stores before it.
        brokers: What was read, by node id.
    """

    state: RecoveryState
    replaces: tuple[UUID, ...] = ()
    brokers: Mapping[int, RecoveredBroker] = field(default_factory=dict)

    def encode(self) -> bytes:
        """Value of its key."""
        return encode_record(
            {
                "state": self.state.value,
                "replaces": list(map(format_uuid, self.replaces)),
                "brokers": {
                    str(node): [one.epoch, *sorted(map(format_uuid, one.directories))]
                    for node, one in sorted(self.brokers.items())
                },
            }
        )

    def accounts_for(
        self, node_id: int, directory_id: UUID | None, incarnation: UUID | None
    ) -> bool:
        """Whether a broker's directory that names an incarnation belongs to this store."""
        return (
            self.state is RecoveryState.RECOVERED
            and incarnation in self.replaces
            and node_id in self.brokers
            and directory_id in self.brokers[node_id].directories
        )


def decode_origin(value: bytes) -> Origin:
    """An origin.

    Raises:
        MetadataFormatError: Damaged or newer.
    """
    fields = decode_record(ORIGIN_KEY, value)
    try:
        return Origin(
            OriginState(fields["state"]), parse_uuid(fields["store"]), int(fields["node"])
        )
    except (KeyError, TypeError, ValueError) as error:
        raise MetadataFormatError(f"{ORIGIN_KEY}: {error!r}") from error


def decode_recovery(value: bytes) -> Recovery:
    """A recovery.

    Raises:
        MetadataFormatError: Damaged or newer.
    """
    fields = decode_record(RECOVERY_KEY, value)
    try:
        return Recovery(
            RecoveryState(fields["state"]),
            tuple(map(parse_uuid, fields["replaces"])),
            {
                int(node): RecoveredBroker(int(epoch), frozenset(map(parse_uuid, ids)))
                for node, (epoch, *ids) in fields["brokers"].items()
            },
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise MetadataFormatError(f"{RECOVERY_KEY}: {error!r}") from error


def check_marks(items: Collection[KeyValue]) -> None:
    """Refuse contents that are not whole.

    Args:
        items: Keys of the store; the marks, if it has them, are among them.

    Raises:
        UnfinishedStoreError: A copy or a recovery is not at its end, or the cluster has been left.
        MetadataFormatError: A mark cannot be read.
    """
    for item in items:
        if item.key == ORIGIN_KEY:
            _check_origin(decode_origin(item.value))
        elif item.key == RECOVERY_KEY:
            state = decode_recovery(item.value).state
            if state is not RecoveryState.RECOVERED:
                raise UnfinishedStoreError(
                    "a recovery of the metadata store is not finished: run `varve cluster "
                    "recover-metadata` again, it goes on where it was"
                )


async def check_whole(store: MetadataStore) -> None:
    """As `check_marks`, of a store.

    Raises:
        UnfinishedStoreError: As there.
        StoreError: It cannot be read.
    """
    found = [await store.get(key) for key in (ORIGIN_KEY, RECOVERY_KEY)]
    check_marks([item for item in found if item is not None])


async def recovery_of(store: MetadataStore) -> Recovery | None:
    """The recovery that filled the store; None: there was none.

    Raises:
        MetadataFormatError: The mark cannot be read.
        StoreError: The store cannot be read.
    """
    item = await store.get(RECOVERY_KEY)
    return None if item is None else decode_recovery(item.value)


def _check_origin(origin: Origin) -> None:
    if origin.state is OriginState.COPYING:
        raise UnfinishedStoreError(
            f"the metadata of node {origin.node_id} is being copied to this store: run `varve "
            "metadata copy` again, it goes on where it was"
        )
    if origin.state is OriginState.LEFT:
        raise UnfinishedStoreError(
            f"the metadata of this store was copied to node {origin.node_id}, which is alone now: "
            "start that one with metadata.store=sqlite, or run `varve metadata copy` to come back"
        )
