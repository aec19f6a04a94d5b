"""Subscriptions as classic consumers write them; a broker only reads them.

Source: Kafka 4.2, ConsumerProtocolSubscription.json.
"""

from struct import pack

from protocol.internal.consumer_protocol import ConsumerSubscription


def encode_subscription(subscription: ConsumerSubscription) -> bytes:
    """A subscription in its version, 0 to 3."""
    version, user_data = subscription.version, subscription.user_data
    parts = [pack(">hi", version, len(subscription.topics)), *map(_string, subscription.topics)]
    parts.append(pack(">i", -1) if user_data is None else pack(">i", len(user_data)) + user_data)
    if version >= 1:
        parts.append(pack(">i", len(subscription.owned)))
        for topic, partitions in subscription.owned.items():
            parts += (_string(topic), pack(f">i{len(partitions)}i", len(partitions), *partitions))
    if version >= 2:
        parts.append(pack(">i", subscription.generation))
    if version >= 3:
        parts.append(pack(">h", -1) if subscription.rack is None else _string(subscription.rack))
    return b"".join(parts)


def _string(text: str) -> bytes:
    return pack(">h", len(text.encode())) + text.encode()
