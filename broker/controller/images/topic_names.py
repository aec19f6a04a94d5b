"""Topic names: which are valid, and which are internal.

Source: Kafka, clients/.../common/internals/Topic.java.
"""

import re
from typing import Final

CONSUMER_OFFSETS: Final = "__consumer_offsets"
TRANSACTION_STATE: Final = "__transaction_state"
SHARE_GROUP_STATE: Final = "__share_group_state"
REMOTE_LOG_METADATA: Final = "__remote_log_metadata"
"""Ours, though not internal: Kafka shows it to clients like any other."""
CLUSTER_METADATA: Final = "__cluster_metadata"

INTERNAL_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE})
"""Topics Metadata marks as internal; clients hide them from pattern subscriptions."""

BROKERS_OWN_TOPICS: Final = INTERNAL_TOPICS | {REMOTE_LOG_METADATA}
"""Topics whose records the broker writes, and believes: no client may write there."""

ADMIN_CLIENT_ID: Final = "__admin_client"
"""Kafka's own tools write internal topics under this client id."""

TOPIC_NAME_LENGTH_MAX: Final = 249
"""So that the directory `<name>-<partition>` with a suffix stays below 255 characters."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def may_produce_to(name: str, client_id: str | None, *, is_broker: bool = False) -> bool:
    """Whether records of a client may go to a topic: Kafka's INVALID_TOPIC_EXCEPTION if not.

    Kafka's tools may write what Kafka calls internal. No client writes `__remote_log_metadata`:
    local segments are deleted on the strength of its records, and Kafka's tools write none. Other
    brokers do (`is_broker`, by `broker.requests.inter_broker.is_of_member`).
    """
    if name == REMOTE_LOG_METADATA:
        return is_broker
    return name not in BROKERS_OWN_TOPICS or client_id == ADMIN_CLIENT_ID


def name_problem(name: str) -> str | None:
    """Why `name` is no topic name, in Kafka's sentence; None when it is one."""
    if not name:
        reason = "the empty string is not allowed"
    elif name in (".", ".."):
        reason = f"'{name}' is not allowed"
    elif len(name) > TOPIC_NAME_LENGTH_MAX:
        reason = (
            f"the length of '{name}' is longer than the max allowed length {TOPIC_NAME_LENGTH_MAX}"
        )
    elif not _LEGAL.fullmatch(name):
        reason = (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    else:
        return None
    return f"Topic name is invalid: {reason}"


def may_collide(name: str) -> bool:
    """Whether `name` has a character that metric names fold into another."""
    return "." in name or "_" in name


def collision_key(name: str) -> str:
    """What two names have in common when their metrics would collide."""
    return name.replace(".", "_")
