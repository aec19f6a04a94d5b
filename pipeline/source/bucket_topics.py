"""Topics of a bucket as last seen, followed as they grow.

A batch query views once; a stream at every micro-batch, and what it has seen costs it one
request a partition while nothing is new.
"""

from collections.abc import Mapping
from uuid import UUID

from pipeline.plan.bucket import Bucket
from pipeline.plan.bucket_log import BucketTopic, follow_topic, read_bucket_log
from pipeline.plan.listing import TopicSelection, find_topics


class BucketTopics:
    """See the module. Belongs to one loop."""

    def __init__(self) -> None:
        self._seen: dict[str, BucketTopic] = {}

    async def view(
        self,
        bucket: Bucket,
        selection: TopicSelection,
        topic_id: UUID | None = None,
    ) -> Mapping[str, BucketTopic]:
        """The topics wanted, by name; one of which the bucket has nothing is not in it.

        A topic that was seen is followed as long as no other incarnation of it comes up.

        Args:
            bucket: Where.
            selection: Which topics and partitions.
            topic_id: This incarnation; None: the latest of each.

        Raises:
            TopicError: No topic wanted has that id.
            RemoteStorageError: The bucket cannot be read now.
        """
        known = {
            name: topic
            for name, topic in self._seen.items()
            if selection.has_topic(name) and topic_id in (None, topic.topic_id)
        }
        ids: dict[str, set[UUID]] = {}
        if known:
            for name, id_ in await find_topics(bucket, selection):
                ids.setdefault(name, set()).add(id_)
        followed: dict[str, BucketTopic] = {}
        for name, topic in known.items():
            if ids.get(name) == {topic.topic_id, *topic.other_ids}:
                followed[name] = await follow_topic(bucket, topic, selection)
        if not known or ids.keys() - followed.keys():
            read = await read_bucket_log(bucket, selection, topic_id)
            followed = {**read, **followed}
        self._seen.update(followed)
        return followed
