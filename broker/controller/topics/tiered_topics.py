"""Topics with remote storage, and the protection of `__remote_log_metadata` that they need.

What remote storage holds of a topic is recorded in `__remote_log_metadata` alone. While
any topic depends on them they may not be deleted, expire, be read from other partitions than they
were written to, or be written without being on disk. Kafka allows all of it, and forgets then what
is in the bucket.
"""

from collections.abc import Iterable, Mapping

from broker.controller.images.cluster_image import ClusterImage
from broker.controller.images.topic_names import BROKERS_OWN_TOPICS, REMOTE_LOG_METADATA
from broker.controller.topics.topics import REMOTE_LOG_METADATA_CONFIGS
from broker.runtime.errors import ApiError
from config.errors import InvalidConfigError
from config.topic import has_remote_history, is_tiered
from protocol.error_codes import ErrorCode

TOPICS_SHOWN_MAX = 5
"""Names in one sentence; there may be thousands."""

_TIERING_KEYS = ("remote.storage.enable", "remote.log.delete.on.disable")


def may_be_tiered(name: str) -> bool:
    """Whether a topic of this name may have remote storage: the broker's own may not.

    Those are read to find out what is in remote storage, or before it can be asked. Kafka takes the
    setting and does as if it were not there (UnifiedLog.isRemoteLogEnabled).
    """
    return name not in BROKERS_OWN_TOPICS


def own_overrides(name: str, overrides: Mapping[str, str]) -> Mapping[str, str]:
    """A topic's own settings as they count: without remote storage where it may not be."""
    if may_be_tiered(name) or not any(key in overrides for key in _TIERING_KEYS):
        return overrides
    return {key: text for key, text in overrides.items() if key not in _TIERING_KEYS}


def check_may_be_tiered(name: str, new: Mapping[str, str], current: Mapping[str, str]) -> None:
    """Refuse to switch on remote storage for one of the broker's own topics.

    Where it stands already it may stay: it has no effect.

    Raises:
        InvalidConfigError: Client sees INVALID_CONFIG.
    """
    if is_tiered(new) and not is_tiered(current) and not may_be_tiered(name):
        raise InvalidConfigError(
            f"Remote storage cannot be enabled for topic {name}: the broker reads it itself."
        )


def tiered_topics(image: ClusterImage) -> list[str]:
    """Names of the topics that have remote storage."""
    return [
        topic.name
        for topic in image.topics.values()
        if is_tiered(topic.overrides) and may_be_tiered(topic.name)
    ]


def shown(names: Iterable[str]) -> str:
    """How many there are, and the first of their names."""
    ordered = sorted(names)
    return f"{len(ordered)}: {', '.join(ordered[:TOPICS_SHOWN_MAX])}"


def check_metadata_stays(image: ClusterImage, name: str, doing: str) -> None:
    """Refuse what would lose records of `__remote_log_metadata` while topics depend on them.

    Args:
        image: The topics there are.
        name: What is to be changed; any topic but `__remote_log_metadata` may be.
        doing: "be deleted", for the sentence.

    Raises:
        ApiError: POLICY_VIOLATION.
    """
    if name != REMOTE_LOG_METADATA:
        return
    depending = [
        topic.name
        for topic in image.topics.values()
        if has_remote_history(topic.overrides) and may_be_tiered(topic.name)
    ]
    if depending:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"{name} may not {doing}: it is the only metadata of the remote segments of topics "
            "that "
            f"have any ({shown(depending)}).",
        )
    if image.deleted_topics:
        raise ApiError(
            ErrorCode.POLICY_VIOLATION,
            f"{name} may not {doing}: what {len(image.deleted_topics)} deleted topics have in "
            "remote storage is still being removed.",
        )


def check_metadata_settings(name: str, new: Mapping[str, str], current: Mapping[str, str]) -> None:
    """Refuse settings under which records of `__remote_log_metadata` get lost, or are refused.

    Whether or not a topic depends on it now: one that is created later would. A setting that is
    wrong already may be left so; the broker corrects it when it opens the topic.

    Raises:
        InvalidConfigError: Client sees INVALID_CONFIG.
    """
    if name != REMOTE_LOG_METADATA:
        return
    for key, text in REMOTE_LOG_METADATA_CONFIGS.items():
        if new.get(key) != text and new.get(key) != current.get(key):
            raise InvalidConfigError(
                f"{key} of {name} has to be {text}: else the only metadata of remote segments "
                "could be lost, or refused."
            )
