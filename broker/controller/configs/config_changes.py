"""Changes of settings that were asked for at run time: planned on the image, checked, committed.

resources ──plan, check──> refusals, and units ──one commit──> results
"""

from collections.abc import Callable, Sequence
from typing import Final

from broker.controller.changes import Changes
from broker.controller.configs.configs import ConfigRules
from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.metadata_records import (
    ConfigResource,
    ResourceType,
    config_key,
    encode_config,
    topic_key,
)
from broker.controller.images.results import Result, result_of
from broker.controller.store.metadata_store import Compare, Delete, Put, key_present
from broker.controller.store.store_writer import Unit
from broker.controller.topics.min_isr_change import emptied_elrs
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode

CLUSTER_DEFAULTS: Final = ConfigResource(ResourceType.BROKER, "")
"""Settings of all brokers."""

Plan = Callable[[ConfigResource], dict[str, str]]
"""All that is to be set on a resource; ApiError: what was asked for cannot be."""


class ConfigChanges:
    """See the module. Runs on the loop's thread."""

    __slots__ = ("_changes", "_image", "_rules")

    def __init__(
        self, changes: Changes, *, image: Callable[[], ClusterImage], rules: ConfigRules
    ) -> None:
        """Change nothing yet.

        Args:
            changes: All of the cluster's state go through it.
            image: The newest.
            rules: What may be set.
        """
        self._changes = changes
        self._image = image
        self._rules = rules

    async def alter(
        self, resources: Sequence[ConfigResource], plan: Plan, *, validate_only: bool
    ) -> dict[ConfigResource, Result]:
        """Set what is planned for each resource; one result each."""
        if validate_only:
            return {resource: self._planned(resource, plan)[0] for resource in resources}
        return await self._changes.run(self._alter(resources, plan))

    async def _alter(
        self, resources: Sequence[ConfigResource], plan: Plan
    ) -> dict[ConfigResource, Result]:
        if len(resources) > 1 and CLUSTER_DEFAULTS in resources:
            # Both the cluster's and a topic's `min.insync.replicas` may empty an ELR: each is
            # planned on what the one before has left.
            results: dict[ConfigResource, Result] = {}
            for resource in resources:
                results |= await self._alter([resource], plan)
            return results
        planned = {resource: self._planned(resource, plan) for resource in resources}
        outcomes = iter(
            await self._changes.commit([u for _, u in planned.values() if u is not None])
        )
        return {
            resource: result if unit is None else result_of(next(outcomes))
            for resource, (result, unit) in planned.items()
        }

    def _planned(self, resource: ConfigResource, plan: Plan) -> tuple[Result, Unit | None]:
        image = self._image()
        current = image.config(resource)
        try:
            new = plan(resource)
            self._rules.check(resource, new, current, image)
            if resource.type is ResourceType.TOPIC and resource.name not in image.topics:
                raise ApiError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"The topic '{resource.name}' does not exist.",
                )
        except ApiError as error:
            return Result(error.code, error.message), None
        if new == current:
            return Result(), None
        key = config_key(resource)
        compare: tuple[Compare, ...] = ()
        if resource.type is ResourceType.TOPIC:
            compare = (key_present(topic_key(resource.name)),)
        operation = Put(key, encode_config(new)) if new else Delete(key)
        default = self._rules.effective(image).min_insync_replicas
        puts = emptied_elrs(image, resource, new, default)
        return Result(), Unit(compare=compare, operations=(operation, *puts))
