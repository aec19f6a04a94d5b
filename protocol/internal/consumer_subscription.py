"""Subscription of a consumer, as far as every version agrees on it.

What a member with protocol type `consumer` sends as its protocol metadata begins, big-endian, with

    size  field
       2  version          0 upwards
       4  number of topics
          of each topic:
       2    length
       *    name           UTF-8

and goes on with fields (user data, owned partitions, generation, rack) that differ by version.

Source: Kafka, ConsumerProtocolSubscription.json, ClassicGroup.computeSubscribedTopics.
"""

from struct import Struct

from protocol.errors import DecodeError

_HEAD = Struct(">hi")
_LENGTH = Struct(">h")

PROTOCOL_TYPE = "consumer"


def subscribed_topics(metadata: bytes) -> list[str]:
    """Topics that a consumer is subscribed to.

    Raises:
        DecodeError: The bytes are no subscription.
    """
    if len(metadata) < _HEAD.size:
        raise DecodeError(f"subscription of {len(metadata)} bytes")
    version, count = _HEAD.unpack_from(metadata)
    # A name takes at least its length field, so a greater count cannot be true.
    if version < 0 or not 0 <= count <= (len(metadata) - _HEAD.size) // _LENGTH.size:
        raise DecodeError(f"subscription version {version} of {count} topics")
    topics = []
    position = _HEAD.size
    for _ in range(count):
        if position + _LENGTH.size > len(metadata):
            raise DecodeError("subscription ends within a topic")
        (length,) = _LENGTH.unpack_from(metadata, position)
        position += _LENGTH.size
        end = position + length
        if length < 0 or end > len(metadata):
            raise DecodeError(f"topic name of {length} bytes")
        try:
            topics.append(metadata[position:end].decode())
        except UnicodeDecodeError as error:
            raise DecodeError("topic name is not UTF-8") from error
        position = end
    return topics
