"""Leader epochs that a single node begins when records may be lost (KIP-320).

    not closed cleanly  ──> before its log is opened
    closed, yet damaged ──> when it is open, before it serves
    log missing         ──> before another is made, if the old one is known elsewhere
    none can be begun   ──> an alert, and the next start counts as one after a kill

A power cut may have lost records that consumers have read, and new ones will get the same offsets:
in the same epoch no consumer could detect that. In a cluster nothing is begun here: a broker that
starts gets a role only in a leader epoch that began after it had stopped, and of several replicas
the one that has lost records follows another.
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING

from storage.environment.alerts import AlertKind
from storage.types.topic_partition import TopicPartition

if TYPE_CHECKING:
    from uuid import UUID

    from broker.controller.controller import Controller
    from storage.manager.log_manager import LogManager

LOGGER = logging.getLogger(__name__)


class NewEpochs:
    """See the module. On the loop's thread."""

    def __init__(
        self, controller: "Controller", log_manager: "LogManager", *, is_alone: bool
    ) -> None:
        self._controller = controller
        self._log_manager = log_manager
        self.is_alone = is_alone

    async def begin(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Begin another leader epoch of the image's partitions; return the new epochs.

        Those of topics for which the metadata store refuses get none, and an alert: the next start
        begins them, however this one ends.
        """
        if not self.is_alone:
            return {}
        image = self._controller.image
        wanted: dict[UUID, set[int]] = {}
        for name, index in partitions:
            if image.partition(name, index) is not None:
                wanted.setdefault(image.topics[name].topic_id, set()).add(index)
        if not wanted:
            return {}
        done = await self._controller.begin_epochs(wanted)
        image = self._controller.image
        begun: dict[TopicPartition, int] = {}
        for topic_id, indexes in wanted.items():
            topic = image.topics_by_id.get(topic_id)
            if topic is None:
                continue
            if topic_id not in done:
                self._log_manager.count_as_unclean()
                self._log_manager.alerts.set(
                    AlertKind.LEADER_EPOCH_STALE,
                    topic.name,
                    "the metadata store refused to begin a leader epoch after an unclean start: "
                    "consumers that have read lost records do not detect the truncation until "
                    "the next start",
                )
                continue
            for index in indexes:
                begun[TopicPartition(topic.name, index)] = topic.partitions[index].leader_epoch
        LOGGER.info("new leader epochs assigned partitions=%d", len(begun))
        return begun
