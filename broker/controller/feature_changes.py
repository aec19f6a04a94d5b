"""Changes of the cluster's finalised features, all that are asked for or none (KIP-584)."""

import logging
from collections.abc import Callable, Mapping, Sequence

from broker.controller.changes import Changes
from broker.controller.images.broker_records import broker_key
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.features import (
    FeatureUpdate,
    RecordLevel,
    Refusal,
    plan_update,
    writes,
)
from broker.controller.images.metadata_records import FEATURES_KEY, encode_features
from broker.controller.images.results import result_of
from broker.controller.store.metadata_store import Put, unchanged_since
from broker.controller.store.store_writer import Unit
from protocol.error_codes import ErrorCode

LOGGER = logging.getLogger(__name__)


class FeatureChanges:
    """See the module. Runs on the loop's thread."""

    __slots__ = ("_changes", "_image", "_node_id")

    def __init__(
        self, changes: Changes, *, image: Callable[[], ClusterImage], node_id: int
    ) -> None:
        """Change nothing yet.

        Args:
            changes: What is planned is committed through it.
            image: The newest.
            node_id: Of this broker.
        """
        self._changes = changes
        self._image = image
        self._node_id = node_id

    async def update(
        self, updates: Sequence[FeatureUpdate], *, validate_only: bool
    ) -> tuple[ErrorCode, str | None]:
        """Change finalised levels; the error and why."""
        return await self._changes.run(self._update(updates, validate_only))

    async def _update(
        self, updates: Sequence[FeatureUpdate], validate_only: bool
    ) -> tuple[ErrorCode, str | None]:
        image = self._image()
        current = image.features
        brokers = {
            node: broker.registration.features
            for node, broker in image.brokers.items()
            if broker.registration is not None
        }
        planned = plan_update(current, updates, node_id=self._node_id, brokers=brokers)
        if isinstance(planned, Refusal):
            return planned
        if lost := _lost_by(current, planned, image):
            return ErrorCode.INVALID_UPDATE_VERSION, lost
        if validate_only or planned == current:
            return ErrorCode.NONE, None
        # A broker that registers in this moment may have less: it is not let in then.
        same = tuple(
            unchanged_since(broker_key(node), broker.epoch)
            for node, broker in image.brokers.items()
            if broker.registration is not None
        )
        put = Put(FEATURES_KEY, encode_features(planned))
        (error,) = await self._changes.commit([Unit(compare=same, operations=(put,))])
        result = result_of(error)
        if error is None:
            LOGGER.info("features changed levels=%s", planned)
        return result.error, result.message


def _lost_by(current: Mapping[str, int], planned: Mapping[str, int], image: ClusterImage) -> str:
    """Why a lower level would lose what records have now; empty: nothing would be."""
    if not writes(current, RecordLevel.MOVES) or writes(planned, RecordLevel.MOVES):
        return ""
    for topic in image.topics.values():
        for partition in topic.partitions:
            if partition.is_reassigning:
                return (
                    f"{topic.name}-{partition.index} is being reassigned, which records of the "
                    "lower level cannot say: let it end, or cancel it."
                )
    return ""
