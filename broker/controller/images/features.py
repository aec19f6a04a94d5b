"""Features: what the whole cluster has agreed to do, as numbered levels (KIP-584, KIP-1022).

    name                              level  means
    group.version                         1  consumer groups of the new protocol (KIP-848)
    transaction.version                   1  flexible records in the transaction log (KIP-890)
    transaction.version                   2  an epoch for each transaction, partitions added by
                                             Produce (KIP-890)
    share.version                         1  share groups (KIP-932)
    eligible.leader.replicas.version      1  replicas outside the ISR that may still lead (KIP-966)
    varve.version                         1  records of the metadata store with what `RecordLevel`
                                             names; Varve's own, as Kafka has metadata.version

Level 0 is a feature that is not used. Clients see the finalised levels in ApiVersions and speak
accordingly; an operator changes them with UpdateFeatures. A new cluster begins with the levels of
`INITIAL`, and so does one whose metadata was written before features were.

`varve.version` lets two releases run side by side. A release that reads a record and does not know
a field writes the record without it: so no broker writes a field before the level that brought it
is finalised, and it is finalised only when all registered brokers have it. A caller that is about
to write such a field asks `writes`. A release that has less than what is finalised does not start.

Source: Kafka, FeatureControlManager.java, QuorumFeatures.java, TransactionVersion.java.
"""

from collections.abc import Mapping, Sequence
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from protocol.error_codes import ErrorCode

GROUP_VERSION: Final = "group.version"
TRANSACTION_VERSION: Final = "transaction.version"
SHARE_VERSION: Final = "share.version"
ELR_VERSION: Final = "eligible.leader.replicas.version"
VARVE_VERSION: Final = "varve.version"


OF_KRAFT: Final = ("metadata.version", "kraft.version")
"""Features of every cluster of Kafka's, which the release it is at is set by; there are none here.

`kafka-features.sh` names them for `--release-version` and `--metadata`."""


class RecordLevel(IntEnum):
    """What a level of `varve.version` brings into the records of the metadata store."""

    FIRST = 0
    """Topics, partitions with leader, ISR, ELR and directories, settings, brokers."""
    MOVES = 1
    """Adding and removing replicas; directories that are lost, or that a replica is leaving."""


def writes(levels: Mapping[str, int], since: RecordLevel) -> bool:
    """Whether records may have what `since` brings, at the finalised levels of an image."""
    return levels.get(VARVE_VERSION, RecordLevel.FIRST) >= since


class SupportedRange(NamedTuple):
    """Levels that this release can work at, both inclusive."""

    lowest: int
    highest: int


SUPPORTED: Final[Mapping[str, SupportedRange]] = MappingProxyType(
    {
        GROUP_VERSION: SupportedRange(0, 1),
        TRANSACTION_VERSION: SupportedRange(0, 2),
        SHARE_VERSION: SupportedRange(0, 1),
        ELR_VERSION: SupportedRange(0, 1),
        VARVE_VERSION: SupportedRange(RecordLevel.FIRST, max(RecordLevel)),
    }
)

INITIAL: Final[Mapping[str, int]] = MappingProxyType(
    {
        GROUP_VERSION: 1,
        TRANSACTION_VERSION: 2,
        SHARE_VERSION: 1,
        ELR_VERSION: 1,
        VARVE_VERSION: int(max(RecordLevel)),
    }
)
"""What a new cluster is given."""


class UpgradeType(IntEnum):
    """How far an update may go (KIP-778)."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


def unsupported(
    levels: Mapping[str, int], ranges: Mapping[str, tuple[int, int]] | None = None
) -> str:
    """What of finalised levels a release cannot work at, as a sentence; empty: nothing.

    Args:
        levels: Finalised, by feature.
        ranges: Lowest and highest level that the release supports, by feature; None: this one's.
    """
    supported = SUPPORTED if ranges is None else ranges
    for name, level in sorted(levels.items()):
        lowest, highest = supported.get(name, (0, 0))
        if not lowest <= level <= highest:
            return (
                f"the cluster has feature {name} at level {level}; "
                f"this release supports {lowest} to {highest}"
            )
    return ""


class FeatureUpdate(NamedTuple):
    """A requested level."""

    name: str
    level: int
    upgrade_type: int


class Refusal(NamedTuple):
    """Error of a request that is refused as a whole."""

    error: ErrorCode
    message: str


def plan_update(
    current: Mapping[str, int],
    updates: Sequence[FeatureUpdate],
    *,
    node_id: int,
    brokers: Mapping[int, Mapping[str, tuple[int, int]]] = MappingProxyType({}),
) -> dict[str, int] | Refusal:
    """All levels after the updates: all of them are made, or none.

    Args:
        current: Levels as they are.
        updates: What is asked for.
        node_id: Of this broker, for messages.
        brokers: Ranges of levels that registered brokers support, by broker and feature: fenced
            brokers count, for they will be back.
    """
    planned = dict(current)
    asked = {update.name: update for update in updates}
    for name in OF_KRAFT:
        if name in asked:
            return Refusal(
                ErrorCode.INVALID_UPDATE_VERSION,
                f"Invalid update version {asked[name].level} for feature {name}. Varve has no "
                "metadata.version and no kraft.version, since its metadata is in no KRaft log, and "
                "so it is at the level of no Kafka release: what its own releases write is "
                f"{VARVE_VERSION}. Nothing was changed; name the features to change one by one "
                "(kafka-features.sh --feature), of those that it describes.",
            )
    for update in updates:
        reason = _reason_against(current.get(update.name, 0), update, node_id)
        if reason is None:
            reason = _reason_of_brokers(update, brokers)
        if reason is not None:
            message = f"Invalid update version {update.level} for feature {update.name}. {reason}"
            return Refusal(ErrorCode.INVALID_UPDATE_VERSION, message)
        planned[update.name] = update.level
    return planned


def _reason_against(current: int, update: FeatureUpdate, node_id: int) -> str | None:
    try:
        upgrade_type = UpgradeType(update.upgrade_type)
    except ValueError:
        upgrade_type = UpgradeType.UNKNOWN
    if upgrade_type is UpgradeType.UNKNOWN:
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    levels = SUPPORTED.get(update.name, SupportedRange(0, 0))
    if not levels.lowest <= update.level <= levels.highest:
        if levels.highest == 0:
            return f"Local controller {node_id} does not support this feature."
        return f"Local controller {node_id} only supports versions {levels.lowest}-{levels.highest}"
    if update.name not in SUPPORTED:
        return f"Local controller {node_id} does not support this feature."
    if update.level < current and upgrade_type is UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    if update.level > current and upgrade_type is not UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    return None


def _reason_of_brokers(
    update: FeatureUpdate, brokers: Mapping[int, Mapping[str, tuple[int, int]]]
) -> str | None:
    for node_id, ranges in sorted(brokers.items()):
        least, highest = ranges.get(update.name, (0, 0))
        if least <= update.level <= highest:
            continue
        if highest == 0:
            return f"Broker {node_id} does not support this feature."
        return f"Broker {node_id} only supports versions {least}-{highest}"
    return None
