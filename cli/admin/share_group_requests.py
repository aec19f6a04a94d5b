"""ShareGroupDescribe and DescribeShareGroupOffsets (KIP-932) for the client library.

It has neither. Share groups are no groups for DescribeGroups, and have start offsets instead of
committed ones.
"""

import warnings
from collections.abc import Sequence
from typing import Any

from cli.admin import kafka_schemas
from cli.admin.consumer_group_describe import AdminClient

with warnings.catch_warnings():
    # The library reads message schemas by a deprecated call.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.api_message import ApiMessage

    class ShareGroupDescribeRequest(ApiMessage, load_json=kafka_schemas):  # type: ignore[call-arg,misc]  # the library has no types
        """Made of the schema of this name."""

    class ShareGroupDescribeResponse(ApiMessage, load_json=kafka_schemas):  # type: ignore[call-arg,misc]  # the library has no types
        """Made of the schema of this name."""

    class DescribeShareGroupOffsetsRequest(ApiMessage, load_json=kafka_schemas):  # type: ignore[call-arg,misc]  # the library has no types
        """Made of the schema of this name."""

    class DescribeShareGroupOffsetsResponse(ApiMessage, load_json=kafka_schemas):  # type: ignore[call-arg,misc]  # the library has no types
        """Made of the schema of this name."""


class ShareAdminClient(AdminClient):
    """The commands' admin client, with requests for share groups."""

    def describe_share_groups(self, groups: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Descriptions of groups by their coordinators: the fields of the answer by group.

        Raises:
            KafkaError: A coordinator cannot be found or asked, or does not know the request.
        """

        async def ask() -> dict[str, dict[str, Any]]:
            answers: dict[str, dict[str, Any]] = {}
            for group, coordinator in (await self._find_coordinator_ids(groups)).items():
                request = ShareGroupDescribeRequest(
                    group_ids=[group], include_authorized_operations=False
                )
                response = await self._manager.send(request, node_id=coordinator)
                answers |= {one.group_id: one.to_dict() for one in response.groups}
            return answers

        described: dict[str, dict[str, Any]] = self._manager.run(ask)
        return described

    def share_group_offsets(self, group: str) -> dict[str, Any]:
        """Start offsets of a group in its partitions: the fields of the answer.

        Raises:
            KafkaError: The coordinator cannot be found or asked, or does not know the request.
        """

        async def ask() -> dict[str, Any]:
            found = await self._find_coordinator_ids([group])
            kind = DescribeShareGroupOffsetsRequest
            one = kind.DescribeShareGroupOffsetsRequestGroup(group_id=group, topics=None)
            response = await self._manager.send(kind(groups=[one]), node_id=found[group])
            (answer,) = response.groups
            fields: dict[str, Any] = answer.to_dict()
            return fields

        offsets: dict[str, Any] = self._manager.run(ask)
        return offsets
