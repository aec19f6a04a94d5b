"""Settings of a topic that concern remote storage: a part of `config.topic.TopicConfig`."""

from config.definition import Settings, config_key, milliseconds, size
from config.kinds import Boolean


class TieredTopicSettings(Settings):
    """Remote storage of a topic."""

    local_retention_bytes: int = config_key(
        "local.retention.bytes",
        size(-2, bits=64, special=((-2, "as retention.bytes"), (-1, "no limit"))),
        default=-2,
        text="How much of a tiered partition stays on local disk once it has been copied.",
        source="KIP-405",
        synonyms=("log.local.retention.bytes",),
        dynamic=True,
    )
    local_retention_ms: int = config_key(
        "local.retention.ms",
        milliseconds(-2, special=((-2, "as retention.ms"), (-1, "no limit"))),
        default=-2,
        text="How long a segment that has been copied also stays on local disk.",
        source="KIP-405",
        synonyms=("log.local.retention.ms",),
        dynamic=True,
    )
    remote_log_copy_disable: bool = config_key(
        "remote.log.copy.disable",
        Boolean(),
        default=False,
        text="Stop copying a tiered topic; what has been copied stays readable.",
        source="KIP-950",
        dynamic=True,
    )
    remote_log_delete_on_disable: bool = config_key(
        "remote.log.delete.on.disable",
        Boolean(),
        default=False,
        text="Delete the copied data when tiering is switched off for the topic.",
        source="KIP-950",
        dynamic=True,
    )
    remote_storage_enable: bool = config_key(
        "remote.storage.enable",
        Boolean(),
        default=False,
        text="Copy closed segments of this topic to remote storage. Needs "
        "`remote.log.storage.system.enable`, and `delete` or nothing in `cleanup.policy`. It can "
        "be switched off again only together with `remote.log.delete.on.disable`.",
        source="KIP-405",
        dynamic=True,
    )
    tier_copy_paused: bool = config_key(
        "tier.copy.paused",
        Boolean(),
        default=False,
        text="Pause copying of this topic to remote storage. Local segments are kept "
        "meanwhile, and copying resumes where it stopped. The broker setting of this "
        "name pauses all topics.",
        source="Varve",
        dynamic=True,
    )
    tier_fetch_paused: bool = config_key(
        "tier.fetch.paused",
        Boolean(),
        default=False,
        text="Pause reading of this topic from remote storage. Consumers that need it get "
        "empty responses meanwhile. The broker setting of this name pauses all "
        "topics.",
        source="Varve",
        dynamic=True,
    )
