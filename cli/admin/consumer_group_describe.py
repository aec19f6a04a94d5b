"""ConsumerGroupDescribe (KIP-848) for the client library, which does not have it.

Groups of the new protocol are no groups for DescribeGroups: it answers that there is none.
"""

import warnings
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from cli.admin import kafka_schemas
from cli.admin.serving_brokers import ServingAdminClient

with warnings.catch_warnings():
    # The library reads message schemas by a deprecated call.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.api_message import ApiMessage

    class ConsumerGroupDescribeRequest(ApiMessage, load_json=kafka_schemas):  # type: ignore[call-arg,misc]  # the library has no types
        """Made of the schema of this name."""

    class ConsumerGroupDescribeResponse(ApiMessage, load_json=kafka_schemas):  # type: ignore[call-arg,misc]  # the library has no types
        """Made of the schema of this name."""


class AdminClient(ServingAdminClient):
    """The library's admin client, with the request it lacks."""

    def describe_consumer_groups(self, groups: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Descriptions of groups by their coordinators: the fields of the answer by group.

        Raises:
            KafkaError: A coordinator cannot be found or asked, or does not know the request.
        """

        async def ask() -> dict[str, dict[str, Any]]:
            by_coordinator: dict[int, list[str]] = defaultdict(list)
            for group, coordinator in (await self._find_coordinator_ids(groups)).items():
                by_coordinator[coordinator].append(group)
            answers: dict[str, dict[str, Any]] = {}
            for coordinator, names in by_coordinator.items():
                request = ConsumerGroupDescribeRequest(
                    group_ids=names, include_authorized_operations=True
                )
                response = await self._manager.send(request, node_id=coordinator)
                answers |= {group.group_id: group.to_dict() for group in response.groups}
            return answers

        described: dict[str, dict[str, Any]] = self._manager.run(ask)
        return described
