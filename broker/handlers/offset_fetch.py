"""OffsetFetch (API key 9), versions 1 to 10.

Behaviour:
- Offset -1 without an error: the group has committed nothing for the partition, or to an earlier
  topic of its name, or there is no such group.
- A group that is listed several times for all its offsets is answered once: it may have many, and
  its name be short.
- `require_stable`: an offset that an open transaction would change is answered with
  UNSTABLE_OFFSET_COMMIT, so that a consumer does not start from a stale one.

Versions:
- 2   null topics mean all offsets; error of the group
- 3   throttle time
- 5   leader epoch                                  KIP-320
- 6   flexible
- 7   require stable                                KIP-447
- 8   several groups at once                        KIP-709
- 9   member id and epoch of new groups             KIP-848
- 10  topic ids instead of names                    KIP-848
"""

from typing import TYPE_CHECKING
from uuid import UUID

from protocol.api_keys import ApiKey
from protocol.error_codes import ErrorCode
from protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from broker.controller.images.cluster_image import ClusterImage
    from broker.groups.offsets.offset_manager import FetchedOffset
    from broker.requests.request_context import RequestContext
    from broker.services import Services

API_KEY = ApiKey.OFFSET_FETCH
VERSIONS = (1, 10)
TOPIC_IDS_FROM_VERSION = 10

_NO_ID = UUID(int=0)


def handle(
    services: "Services", context: "RequestContext", request: OffsetFetchRequest
) -> OffsetFetchResponse:
    """Read a group's offsets, or several groups'."""
    version = context.api_version
    if version < 8:
        return _one_group(services, version, request)
    whole: set[str] = set()
    groups = []
    for group in request.groups:
        if group.topics is None:
            if group.group_id in whole:
                continue
            whole.add(group.group_id)
        groups.append(
            _group(services, group, require_stable=request.require_stable, version=version)
        )
    return OffsetFetchResponse(groups=groups)


def _one_group(
    services: "Services", version: int, request: OffsetFetchRequest
) -> OffsetFetchResponse:
    image = services.controller.image
    if request.topics is None:
        asked = services.groups.committed_topics(request.group_id)
    else:
        asked = [(topic.name, topic.partition_indexes) for topic in request.topics]
    code, fetched = services.groups.fetch_offsets(
        request.group_id,
        [(name, _id_of(image, name), partitions) for name, partitions in asked],
        require_stable=request.require_stable,
    )
    if code is ErrorCode.NONE:
        topics = [
            OffsetFetchResponseTopic(
                name=name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=offset.partition,
                        committed_offset=offset.offset,
                        committed_leader_epoch=offset.leader_epoch,
                        metadata=offset.metadata,
                        error_code=offset.error,
                    )
                    for offset in offsets
                ],
            )
            for (name, _), offsets in zip(asked, fetched, strict=True)
        ]
    elif version >= 2:
        topics = []
    else:
        # Version 1 has no error of the group: every partition carries it.
        topics = [
            OffsetFetchResponseTopic(
                name=name,
                partitions=[
                    OffsetFetchResponsePartition(
                        partition_index=partition,
                        committed_offset=-1,
                        committed_leader_epoch=-1,
                        metadata="",
                        error_code=code,
                    )
                    for partition in partitions
                ],
            )
            for name, partitions in asked
        ]
    return OffsetFetchResponse(error_code=code, topics=topics)


def _group(
    services: "Services", group: OffsetFetchRequestGroup, *, require_stable: bool, version: int
) -> OffsetFetchResponseGroup:
    image = services.controller.image
    by_id = version >= TOPIC_IDS_FROM_VERSION
    asked = _asked(services, image, group, by_id=by_id)
    code, fetched = services.groups.fetch_offsets(
        group.group_id,
        # An unknown topic has no offsets; its partitions are answered below.
        [(name or "", topic_id, partitions) for name, topic_id, partitions in asked],
        require_stable=require_stable,
        member_id=group.member_id,
        member_epoch=group.member_epoch,
    )
    if code is not ErrorCode.NONE:
        return OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=code)
    return OffsetFetchResponseGroup(
        group_id=group.group_id,
        topics=[
            OffsetFetchResponseTopics(
                topic_id=topic_id,
                name=name or "",
                partitions=[_partition(offset, is_known=name is not None) for offset in offsets],
            )
            for (name, topic_id, _), offsets in zip(asked, fetched, strict=True)
        ],
    )


def _asked(
    services: "Services", image: "ClusterImage", group: OffsetFetchRequestGroup, *, by_id: bool
) -> list[tuple[str | None, UUID, list[int]]]:
    """(name, id, partitions) of the requested topics; name None: there is no topic of this id."""
    if group.topics is None:
        stored = services.groups.committed_topics(group.group_id)
        if not by_id:
            return [(name, _id_of(image, name), partitions) for name, partitions in stored]
        # Deleted topics have no id to send to this client.
        return [
            (name, image.topics[name].topic_id, partitions)
            for name, partitions in stored
            if name in image.topics
        ]
    if not by_id:
        return [
            (topic.name, _id_of(image, topic.name), topic.partition_indexes)
            for topic in group.topics
        ]
    asked: list[tuple[str | None, UUID, list[int]]] = []
    for topic in group.topics:
        found = image.topics_by_id.get(topic.topic_id)
        name = None if found is None else found.name
        asked.append((name, topic.topic_id, topic.partition_indexes))
    return asked


def _id_of(image: "ClusterImage", name: str) -> UUID:
    """The id of the topic that has a name now; zero: there is none."""
    found = image.topics.get(name)
    return _NO_ID if found is None else found.topic_id


def _partition(offset: "FetchedOffset", *, is_known: bool) -> OffsetFetchResponsePartitions:
    return OffsetFetchResponsePartitions(
        partition_index=offset.partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        metadata=offset.metadata,
        error_code=offset.error if is_known else ErrorCode.UNKNOWN_TOPIC_ID,
    )
