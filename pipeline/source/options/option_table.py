"""The table of options: every one the data source knows, declared once.

docs/pipeline.md is written from these rows (`pipeline.source.options.reference`), and what is not
here is a mistake of the user.
"""

from collections.abc import Sequence
from typing import Any

from pipeline.source.options import option_values as values
from pipeline.source.options.columns import parse_columns
from pipeline.source.options.offset_limits import parse_limit
from pipeline.source.options.offsets import parse_timestamps
from pipeline.source.options.option import Option
from pipeline.source.options.topics import parse_assign, parse_pattern, parse_subscribe

MAX_PARTITION_BYTES = 128 * values.MIB
MAX_TRIGGER_DELAY_MS = 15 * 60 * 1000
ISOLATION_LEVELS = ("read_uncommitted", "read_committed")
TIERS = ("auto", "bucket", "broker")

PATH = Option(
    "path",
    "-",
    "Where the tier lies: `s3://bucket/prefix` or `file:///directory`. What `load(...)` is given.",
    values.text,
)
STORE_ENDPOINT = Option(
    "store.endpoint", "-", "Address of an S3 server that is not Amazon's.", values.text
)
STORE_REGION = Option("store.region", "-", "Region of the bucket.", values.text)
STORE_PATH_STYLE = Option(
    "store.pathStyle",
    "`false`",
    "Whether the bucket is part of the path, not the host.",
    values.switch,
)
STORE_CREDENTIALS_FILE = Option(
    "store.credentialsFile",
    "-",
    "An AWS credentials file, read on the driver and on every executor. "
    "Without credentials of any kind the machine's own chain is asked.",
    values.text,
)
STORE_PROFILE = Option(
    "store.profile", "`default`", "Section of `store.credentialsFile`.", values.text
)
STORE_ACCESS_KEY_ID = Option(
    "store.accessKeyId", "-", "With `store.secretAccessKey`, instead of a file.", values.text, True
)
STORE_SECRET_ACCESS_KEY = Option(
    "store.secretAccessKey", "-", "Secret: in no plan, log or error.", values.text, True
)
TIER = Option(
    "tier",
    "`auto`",
    "`auto`: the bucket for what is in it, the broker for the rest if one is given. "
    "`bucket`: no broker, ever. `broker`: no bucket.",
    values.one_of(*TIERS),
)
BOOTSTRAP_SERVERS = Option(
    "kafka.bootstrap.servers",
    "-",
    "Brokers, `host:port` between commas. Needed for `tier=broker`.",
    values.servers,
)
SUBSCRIBE = Option("subscribe", "-", "Topics, between commas.", parse_subscribe)
SUBSCRIBE_PATTERN = Option(
    "subscribePattern",
    "-",
    "A regular expression (Python's `re`), found anywhere in a topic's name: "
    "`^...$` for whole names.",
    parse_pattern,
)
ASSIGN = Option("assign", "-", 'Partitions: `{"topicA":[0,1],"topicB":[2]}`.', parse_assign)
TOPIC_ID = Option(
    "topicId",
    "the latest",
    "Which incarnation of the one topic named, where it was deleted and recreated.",
    values.identifier,
)
STARTING_OFFSETS = Option(
    "startingOffsets",
    "`earliest`, of a stream `latest`",
    'Where to begin: `earliest`, `latest` (streams only) or `{"topicA":{"0":23,"1":-2}}`, where -2 '
    "is the earliest and -1 the latest offset. A stream that resumes from its checkpoint takes no "
    "notice.",
    parse_limit,
)
ENDING_OFFSETS = Option(
    "endingOffsets",
    "`latest`",
    'Where a batch query ends: `latest` or `{"topicA":{"0":50,"1":-1}}`; exclusive.',
    parse_limit,
)
STARTING_TIMESTAMP = Option(
    "startingTimestamp",
    "-",
    "Begin at the first record of this time or later, milliseconds since 1970. Stronger than the "
    "other two ways to say it.",
    values.timestamp,
)
ENDING_TIMESTAMP = Option(
    "endingTimestamp",
    "-",
    "End a batch query before the first record of this time or later.",
    values.timestamp,
)
STARTING_BY_TIMESTAMP = Option(
    "startingOffsetsByTimestamp",
    "-",
    'The same by partition: `{"topicA":{"0":1767225600000}}`. Stronger than `startingOffsets`.',
    parse_timestamps,
)
ENDING_BY_TIMESTAMP = Option(
    "endingOffsetsByTimestamp", "-", "The same for the end of a batch query.", parse_timestamps
)
BY_TIMESTAMP_STRATEGY = Option(
    "startingOffsetsByTimestampStrategy",
    "`error`",
    "Where no record is of the starting time or later: `error`, or `latest` to begin at the end.",
    values.one_of("error", "latest"),
)
ISOLATION_LEVEL = Option(
    "isolationLevel",
    "`read_uncommitted`",
    "`read_committed` leaves rows of aborted transactions out and ends before the first "
    "transaction that is still open. The default is Spark's; use `read_committed` where producers "
    "are transactional.",
    values.one_of(*ISOLATION_LEVELS),
)
KAFKA_ISOLATION_LEVEL = Option(
    "kafka.isolation.level",
    "`read_uncommitted`",
    "The same under Kafka's name.",
    values.one_of(*ISOLATION_LEVELS),
)
FAIL_ON_DATA_LOSS = Option(
    "failOnDataLoss",
    "`true`",
    "Whether offsets that are asked for and not there any more are an error. `false`: the read "
    "continues at the next offset there is, and one warning says how many are missing.",
    values.switch,
)
INCLUDE_HEADERS = Option(
    "includeHeaders", "`false`", "Whether there is a column `headers`.", values.switch
)
COLUMNS = Option(
    "columns",
    "all",
    "Columns to read, between commas. A Python source does not learn which columns a query "
    "uses; what is not named here is not even copied.",
    parse_columns,
)
BATCH_METADATA = Option(
    "batchMetadata",
    "`false`",
    "Whether there are columns `leaderEpoch`, `producerId`, `transactional` and `tier`.",
    values.switch,
)
MAX_PARTITION_BYTES_OPTION = Option(
    "maxPartitionBytes",
    "`128 MiB`",
    "Bytes of a segment that one task reads, about: segments are split where their offset index "
    "has entries.",
    values.size,
)
MIN_PARTITIONS = Option(
    "minPartitions", "-", "Tasks to aim at, where there would be fewer.", values.positive
)
MAX_RECORDS_PER_PARTITION = Option(
    "maxRecordsPerPartition", "-", "Offsets that one task reads at most.", values.positive
)
MAX_OFFSETS_PER_TRIGGER = Option(
    "maxOffsetsPerTrigger",
    "-",
    "Offsets in a micro-batch, over all partitions, in proportion to what each has.",
    values.positive,
)
MIN_OFFSETS_PER_TRIGGER = Option(
    "minOffsetsPerTrigger",
    "-",
    "Offsets that must be there before a micro-batch begins.",
    values.positive,
)
MAX_TRIGGER_DELAY = Option(
    "maxTriggerDelay",
    "`15m`",
    "After how long a micro-batch begins with fewer than `minOffsetsPerTrigger`.",
    values.duration_ms,
)
MAX_BYTES_PER_TRIGGER = Option(
    "maxBytesPerTrigger",
    "-",
    "Bytes in a micro-batch, estimated from segment sizes before anything is read. Offsets that "
    "only "
    "the broker has count at the mean size of the segments' records.",
    values.size,
)
PUSH_FILTERS = Option(
    "pushFilters",
    "`false`",
    "Whether conditions on `topic`, `partition` and `offset` and lower bounds of `timestamp` "
    "choose what is read. Needs `spark.sql.python.filterPushdown.enabled=true`: without it Spark "
    "refuses every reader that offers filters. Load a DataFrame of its own for every such query: "
    "see *Filters*.",
    values.switch,
)
KEY_PAIRS = Option(
    "keyPairs",
    "-",
    "`id=private.pem,...`: files of the private keys for encrypted segments. The driver and every "
    "executor read them where they decrypt; only the paths travel.",
    values.key_pairs,
)

OPTIONS: Sequence[Option[Any]] = (
    PATH,
    STORE_ENDPOINT,
    STORE_REGION,
    STORE_PATH_STYLE,
    STORE_CREDENTIALS_FILE,
    STORE_PROFILE,
    STORE_ACCESS_KEY_ID,
    STORE_SECRET_ACCESS_KEY,
    KEY_PAIRS,
    TIER,
    BOOTSTRAP_SERVERS,
    SUBSCRIBE,
    SUBSCRIBE_PATTERN,
    ASSIGN,
    TOPIC_ID,
    STARTING_OFFSETS,
    STARTING_TIMESTAMP,
    STARTING_BY_TIMESTAMP,
    BY_TIMESTAMP_STRATEGY,
    ENDING_OFFSETS,
    ENDING_TIMESTAMP,
    ENDING_BY_TIMESTAMP,
    ISOLATION_LEVEL,
    KAFKA_ISOLATION_LEVEL,
    FAIL_ON_DATA_LOSS,
    INCLUDE_HEADERS,
    BATCH_METADATA,
    COLUMNS,
    MAX_PARTITION_BYTES_OPTION,
    MIN_PARTITIONS,
    MAX_RECORDS_PER_PARTITION,
    MAX_OFFSETS_PER_TRIGGER,
    MIN_OFFSETS_PER_TRIGGER,
    MAX_TRIGGER_DELAY,
    MAX_BYTES_PER_TRIGGER,
    PUSH_FILTERS,
)

WITHOUT_EFFECT = (
    "groupIdPrefix",
    "fetchOffset.numRetries",
    "fetchOffset.retryIntervalMs",
    "kafkaConsumer.pollTimeoutMs",
)
"""Options of Spark's Kafka source that steer its consumer: accepted, and named in the warning."""

REFUSED = {
    "kafka.auto.offset.reset": "say where to begin by startingOffsets",
    "kafka.key.deserializer": "keys are bytes; deserialize them by functions of Spark",
    "kafka.value.deserializer": "values are bytes; deserialize them by functions of Spark",
    "kafka.enable.auto.commit": "no consumer group is used, so nothing is committed",
    "kafka.interceptor.classes": "an interceptor could change rows",
}
"""What Spark's Kafka source refuses too, and what to do instead."""
