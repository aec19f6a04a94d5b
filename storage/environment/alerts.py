"""Alerts: lasting faults of this node that need an operator.

A component that stops because a dependency is missing or fails sets an alert: of a kind,
about a subject, with a sentence for the operator. It clears the alert when it goes on.

    set    ─> ERROR in the log, once; a line of `/readyz`; one more in `varve_alerts{kind=...}`
    clear  ─> INFO in the log, once

An alert does not make a node unready: it serves what it can.
"""

import json
import logging
import threading
from collections import Counter
from enum import StrEnum
from typing import Final, NamedTuple

LOGGER = logging.getLogger(__name__)

ALERTS_MAX: Final = 10_000
"""Alerts held at once. One that finds no room is in the log only."""


class AlertKind(StrEnum):
    """What an alert is about; the label `kind` of the metric."""

    COORDINATOR_UNAVAILABLE = "coordinator-unavailable"
    """A partition of `__consumer_offsets`, `__transaction_state` or `__share_group_state` cannot be
    read, so that its groups or transactions have no coordinator. Subject: the partition."""

    DIRECTORY_FULL = "directory-full"
    """A log directory has no room left and takes no records. Subject: its path."""

    DIRECTORY_MISSING = "directory-missing"
    """A log directory that holds partitions is not here. Subject: its id."""

    DIRECTORY_OFFLINE = "directory-offline"
    """A log directory's disk refused; its partitions are offline. Subject: its path."""

    DIRECTORY_UNUSED = "directory-unused"
    """An empty log directory is not used while another is missing. Subject: its path."""

    LEADER_EPOCH_BEHIND = "leader-epoch-behind"
    """A partition is not led, since its log has a later leader epoch than the metadata store gives
    it: the store is older than the log. Subject: the partition."""

    LEADER_EPOCH_STALE = "leader-epoch-stale"
    """No leader epoch could be begun after an unclean start: consumers do not notice that records
    are lost. Subject: the partitions' topic."""

    LISTENER_NOT_BOUND = "listener-not-bound"
    """A listener set at run time has an address that cannot be used. Subject: its name."""

    METADATA_STORE_FULL = "metadata-store-full"
    """The cluster's metadata store has no room for a change that the controller, which is this
    broker, has to make. Subject: the store."""

    METADATA_STORE_REPLACED = "metadata-store-replaced"
    """The cluster's metadata store was emptied, restored or exchanged while the broker ran: it is
    not followed any more. Subject: the store."""

    PARTITION_OFFLINE = "partition-offline"
    """A log cannot be opened; the others of its directory serve. Subject: the partition."""

    SEGMENT_CUT = "segment-cut"
    """Records at the end of a closed segment are missing in its file. Subject: the partition."""

    SEGMENTS_SET_ASIDE = "segments-set-aside"
    """A recovery found a damage, and segments after it. Subject: the partition."""

    TIER_CLAIM_MISSING = "tier-claim-missing"
    """The bucket is not the one that this broker has used: nothing is copied to remote storage, and
    nothing deleted there. Subject: the claim's object."""

    TIER_COPY_BLOCKED = "tier-copy-blocked"
    """A local segment is not fit to be copied, nor is what follows it. Subject: a partition."""

    TIER_FAILING = "tier-failing"
    """The bucket has not been read, or has taken no copy, for a minute of attempts. Subject: which
    of both."""

    TIER_GARBAGE_STAYS = "tier-garbage-stays"
    """The bucket has let nothing be deleted for ten minutes of attempts: expired segments stay, and
    those of deleted topics. Subject: `removals`."""

    TIER_METADATA_LOST = "tier-metadata-lost"
    """What remote storage holds is not known any more, wholly or in part. Subject: a partition
    whose history waits, or the topic."""

    TIER_LEFT_BEHIND = "tier-left-behind"
    """A partition without remote storage has segments there, and no setting says that they may be
    deleted. Subject: the partition."""

    TIER_NOT_OURS = "tier-not-ours"
    """Nothing is deleted from remote storage: another cluster may use it. Subject: the bucket."""

    TIER_SEGMENT_DAMAGED = "tier-segment-damaged"
    """Objects of remote segments are missing or damaged: consumers wait at them. Subject: the
    partition."""


class Alert(NamedTuple):
    """One alert that is set."""

    kind: AlertKind
    subject: str
    """A path, a partition, an object: with the kind it says which alert this is."""
    text: str
    """A sentence: what is wrong, what stands still because of it, what to do."""


class Alerts:
    """The alerts of one node. May be called from any thread."""

    def __init__(self, *, alerts_max: int = ALERTS_MAX) -> None:
        """`alerts_max`: how many are held at once."""
        self._alerts_max = alerts_max
        self._lock = threading.Lock()
        self._texts: dict[tuple[AlertKind, str], str] = {}
        self.refused = 0
        """Alerts that found no room."""

    def set(self, kind: AlertKind, subject: str, text: str) -> None:
        """Set an alert; nothing happens if it is set with the same message."""
        key = (kind, subject)
        with self._lock:
            if self._texts.get(key) == text:
                return
            if key in self._texts or len(self._texts) < self._alerts_max:
                self._texts[key] = text
            else:
                self.refused += 1
        # Quoted: a field of its own, whatever pairs the sentence has.
        LOGGER.error(
            "alert kind=%s subject=%s text=%s",
            kind.value,
            subject,
            json.dumps(text, ensure_ascii=False),
        )

    def clear(self, kind: AlertKind, subject: str) -> None:
        """Clear an alert; nothing happens if it was not set."""
        with self._lock:
            was_set = self._texts.pop((kind, subject), None) is not None
        if was_set:
            LOGGER.info("alert cleared kind=%s subject=%s", kind.value, subject)

    def all(self) -> list[Alert]:
        """Those that are set, by kind and subject."""
        with self._lock:
            return sorted(Alert(*key, text) for key, text in self._texts.items())

    def counts(self) -> dict[AlertKind, int]:
        """How many of each kind are set; kinds without any are 0."""
        with self._lock:
            counted = Counter(kind for kind, _ in self._texts)
        return {kind: counted[kind] for kind in AlertKind}
