"""The options of a query, as Spark hands them over, checked whole.

Every mistake comes in one error, on the driver, before anything is opened. Nothing here needs a
Spark session: jobs and tools read the same options.
"""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, NamedTuple
from uuid import UUID

from pipeline.plan.bucket import BucketOptions, option_mistakes
from pipeline.plan.errors import OptionsError
from pipeline.source.options import option_table as table
from pipeline.source.options.columns import METADATA_COLUMNS, default_columns
from pipeline.source.options.offset_limits import (
    Earliest,
    GlobalTime,
    Latest,
    OffsetLimit,
    SpecificOffsets,
    SpecificTimes,
    batch_mistakes,
)
from pipeline.source.options.offsets import SPECIAL_OFFSETS
from pipeline.source.options.option import GivenOptions, Option, unknown_option
from pipeline.source.options.topics import Assigned, Subscribed, SubscribedPattern, TopicChoice
from storage.types.topic_partition import TopicPartition


class Query(Enum):
    """Kind of a query, which decides what options may be."""

    BATCH = "batch"
    STREAM = "stream"
    EITHER = "either"
    """Not known yet: Spark asks for the columns before it says which."""


class TriggerLimits(NamedTuple):
    """Limits of a micro-batch.

    Attributes:
        max_offsets, max_bytes: None: no limit.
        min_offsets: None: begin with any.
        max_delay_ms: After this long begin with fewer than `min_offsets`.
    """

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_bytes: int | None = None
    max_delay_ms: int = table.MAX_TRIGGER_DELAY_MS


class SourceOptions(NamedTuple):
    """Options of one read. Pickled to executors; its text hides the secrets.

    Attributes:
        topics: Which partitions.
        bucket: None with `tier=broker`.
        bootstrap_servers: `host:port` each; empty: no broker is asked.
        topic_id: Of the incarnation asked for; None: the latest.
        starting, ending: Where to begin and where a batch query ends.
        latest_if_no_match: Begin at the end where no record is of the starting time or later.
        read_committed: Leave rows of aborted transactions out.
        fail_on_data_loss: Offsets that are gone are an error.
        columns: Names, in order.
        max_partition_bytes, min_partitions, max_records_per_partition: How work is split.
        limits: Of micro-batches.
        push_filters: Spark's filters choose what is read.
        without_effect: Names of options that are accepted and do nothing, for one warning.
    """

    topics: TopicChoice
    bucket: BucketOptions | None
    bootstrap_servers: Sequence[str] = ()
    topic_id: UUID | None = None
    starting: OffsetLimit = Earliest()
    ending: OffsetLimit = Latest()
    latest_if_no_match: bool = False
    read_committed: bool = False
    fail_on_data_loss: bool = True
    columns: Sequence[str] = default_columns(headers=False, metadata=False)
    max_partition_bytes: int = table.MAX_PARTITION_BYTES
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    limits: TriggerLimits = TriggerLimits()
    push_filters: bool = False
    without_effect: Sequence[str] = ()


def parse_options(given: Mapping[str, str], query: Query = Query.EITHER) -> SourceOptions:
    """Read options.

    Args:
        given: Names, in any case, and texts.
        query: What they are for.

    Raises:
        OptionsError: Every mistake there is.
    """
    options = GivenOptions(given)
    parsed = _Parsing(options, query).parse()
    if parsed is None or options.mistakes:
        raise OptionsError(options.mistakes)
    return parsed


class _Parsing:
    """One reading of options; sentences go to `GivenOptions.mistakes`."""

    def __init__(self, options: GivenOptions, query: Query) -> None:
        self._options = options
        self._query = query

    def parse(self) -> SourceOptions | None:
        """The options, or None where there are none without a mistake."""
        options = self._options
        mistakes = options.mistakes
        without_effect = self._names()
        tier = options.read_or(table.TIER, "auto")
        topics = self._topics()
        bucket = self._bucket(tier)
        servers = options.read_or(table.BOOTSTRAP_SERVERS, ())
        self._security(tier, servers)
        if tier == "broker" and not options.has(table.BOOTSTRAP_SERVERS):
            mistakes.append("tier=broker needs kafka.bootstrap.servers")
        topic_id = self._topic_id(topics)
        starting = self._starting()
        ending = self._ending()
        self._about_topics("startingOffsets", starting, topics)
        self._about_topics("endingOffsets", ending, topics)
        strategy = options.read_or(table.BY_TIMESTAMP_STRATEGY, "error")
        parsed_columns = self._columns()
        limits = self._limits()
        parsed = SourceOptions(
            topics=topics or Subscribed(()),
            bucket=bucket,
            bootstrap_servers=() if tier == "bucket" else tuple(servers),
            topic_id=topic_id,
            starting=starting,
            ending=ending,
            latest_if_no_match=strategy == "latest",
            read_committed=self._isolation() == "read_committed",
            fail_on_data_loss=options.read_or(table.FAIL_ON_DATA_LOSS, True),
            columns=parsed_columns,
            max_partition_bytes=options.read_or(
                table.MAX_PARTITION_BYTES_OPTION, table.MAX_PARTITION_BYTES
            ),
            min_partitions=options.read(table.MIN_PARTITIONS),
            max_records_per_partition=options.read(table.MAX_RECORDS_PER_PARTITION),
            limits=limits,
            push_filters=options.read_or(table.PUSH_FILTERS, False),
            without_effect=without_effect,
        )
        self._about_query(starting, ending)
        return None if topics is None else parsed

    def _names(self) -> Sequence[str]:
        """Report unknown names; return those without effect."""
        known = {option.name for option in table.OPTIONS}
        spelt = {name.lower(): name for name in (*known, *table.WITHOUT_EFFECT)}
        own = {name.lower() for name in known}
        without_effect: list[str] = []
        for name in self._options.names():
            if name in own:
                continue
            if name in table.REFUSED:
                self._options.mistakes.append(
                    f"{name} is not supported, as in Spark's Kafka source: {table.REFUSED[name]}"
                )
            elif name in spelt:
                without_effect.append(spelt[name])
            elif not name.startswith("kafka."):
                self._options.mistakes.append(unknown_option(name, known))
            elif not is_security_name(name):
                without_effect.append(name)
        if self._query is Query.BATCH:
            of_streams = (
                table.MAX_OFFSETS_PER_TRIGGER,
                table.MIN_OFFSETS_PER_TRIGGER,
                table.MAX_BYTES_PER_TRIGGER,
                table.MAX_TRIGGER_DELAY,
            )
            without_effect += [row.name for row in of_streams if self._options.has(row)]
        return tuple(without_effect)

    def _topics(self) -> TopicChoice | None:
        rows: Sequence[Option[TopicChoice]] = (
            table.SUBSCRIBE,  # type: ignore[assignment]  # each reads one kind of choice
            table.SUBSCRIBE_PATTERN,
            table.ASSIGN,
        )
        names = "subscribe, subscribePattern and assign"
        given = [row for row in rows if self._options.has(row)]
        if not given:
            self._options.mistakes.append(f"one of {names} must be given")
        elif len(given) > 1:
            both = " and ".join(row.name for row in given)
            self._options.mistakes.append(
                f"{both} contradict each other: only one of {names} can be given"
            )
        choices = [self._options.read(row) for row in given]
        return choices[0] if len(given) == 1 else None

    def _bucket(self, tier: str) -> BucketOptions | None:
        options = self._options
        pairs = options.read_or(table.KEY_PAIRS, {})
        bucket = BucketOptions(
            location=options.read_or(table.PATH, ""),
            endpoint=options.read_or(table.STORE_ENDPOINT, ""),
            region=options.read_or(table.STORE_REGION, ""),
            path_style=options.read_or(table.STORE_PATH_STYLE, False),
            credentials_file=options.read_or(table.STORE_CREDENTIALS_FILE, ""),
            profile=options.read_or(table.STORE_PROFILE, ""),
            access_key_id=options.read_or(table.STORE_ACCESS_KEY_ID, ""),
            secret_access_key=options.read_or(table.STORE_SECRET_ACCESS_KEY, ""),
            key_pairs=tuple(pairs.items()),
        )
        if options.has(table.PATH):
            if bucket.location:
                options.mistakes += option_mistakes(bucket)
        elif tier != "broker":
            options.mistakes.append(
                f"tier={tier} needs a path: s3://bucket/prefix or file:///directory"
            )
        return None if tier == "broker" else bucket

    def _security(self, tier: str, servers: Sequence[str]) -> None:
        """What the broker does not speak is not left out silently."""
        given = {name: text for name, text in self._options.given.items() if is_security_name(name)}
        refused = sorted(
            name
            for name, text in given.items()
            if name != "kafka.security.protocol" or text.strip().upper() != "PLAINTEXT"
        )
        if refused and servers and tier != "bucket":
            self._options.mistakes.append(
                f"{', '.join(refused)}: Varve's listeners speak PLAINTEXT only, "
                "without TLS and SASL"
            )

    def _topic_id(self, topics: TopicChoice | None) -> UUID | None:
        topic_id = self._options.read(table.TOPIC_ID)
        if topic_id is not None and topics is not None:
            several = isinstance(topics, SubscribedPattern) or len(topics.topics) > 1
            if several:
                self._options.mistakes.append(
                    "topicId names one topic's incarnation: name that topic alone"
                )
        return topic_id

    def _starting(self) -> OffsetLimit:
        default: OffsetLimit = Latest() if self._query is Query.STREAM else Earliest()
        return self._limit(
            table.STARTING_TIMESTAMP, table.STARTING_BY_TIMESTAMP, table.STARTING_OFFSETS, default
        )

    def _ending(self) -> OffsetLimit:
        rows = (table.ENDING_TIMESTAMP, table.ENDING_BY_TIMESTAMP, table.ENDING_OFFSETS)
        return self._limit(*rows, Latest())

    def _limit(
        self,
        time: Option[int],
        times: Option[dict[TopicPartition, int]],
        offsets: Option[OffsetLimit],
        default: OffsetLimit,
    ) -> OffsetLimit:
        """The strongest that was given; the others are read too, for their mistakes."""
        time_ms = self._options.read(time)
        times_ms = self._options.read(times)
        limit = self._options.read(offsets)
        if time_ms is not None:
            return GlobalTime(time_ms)
        if times_ms is not None:
            return SpecificTimes(times_ms)
        return default if limit is None else limit

    def _about_topics(self, name: str, limit: OffsetLimit, topics: TopicChoice | None) -> None:
        """Offsets for a partition that is not read are a slip of the pen."""
        special = ""
        if isinstance(limit, SpecificOffsets):
            named, special = limit.offsets.keys(), SPECIAL_OFFSETS
        elif isinstance(limit, SpecificTimes):
            named, name = limit.times_ms.keys(), f"{name}ByTimestamp"
        else:
            return
        strange: list[str] = []
        missing: list[str] = []
        if isinstance(topics, Assigned):
            strange = [str(partition) for partition in named if partition not in topics.partitions]
            missing = [str(partition) for partition in topics.partitions if partition not in named]
        elif isinstance(topics, Subscribed):
            strange = [str(each) for each in named if each.topic not in topics.topics]
            there = {partition.topic for partition in named}
            missing = [topic for topic in topics.topics if topic not in there]
        elif isinstance(topics, SubscribedPattern):
            strange = [str(partition) for partition in named if not topics.matches(partition.topic)]
        if strange:
            self._options.mistakes.append(
                f"{name} names {', '.join(sorted(strange))}, which {topics} does not"
            )
        if missing:
            self._options.mistakes.append(
                f"{name} must name every partition{special}; "
                f"{', '.join(sorted(missing))} is missing"
            )

    def _isolation(self) -> str:
        ours = self._options.read(table.ISOLATION_LEVEL)
        kafkas = self._options.read(table.KAFKA_ISOLATION_LEVEL)
        if ours is not None and kafkas is not None and ours != kafkas:
            self._options.mistakes.append(
                f"isolationLevel={ours} and kafka.isolation.level={kafkas} contradict each other"
            )
        return ours or kafkas or "read_uncommitted"

    def _columns(self) -> Sequence[str]:
        headers = self._options.read_or(table.INCLUDE_HEADERS, False)
        metadata = self._options.read_or(table.BATCH_METADATA, False)
        columns = self._options.read(table.COLUMNS)
        if columns is None:
            return default_columns(headers=headers, metadata=metadata)
        of_batches = [name for name in columns if name in METADATA_COLUMNS]
        asked = (
            (table.INCLUDE_HEADERS, headers, ["headers"] if "headers" in columns else []),
            (table.BATCH_METADATA, metadata, of_batches),
        )
        for row, wanted, named in asked:
            if self._options.has(row) and wanted != bool(named):
                listed = ", ".join(named) or "none of its columns"
                self._options.mistakes.append(
                    f"{row.name}={str(wanted).lower()} contradicts columns, which has {listed}: "
                    f"with columns, {row.name} can be left out"
                )
        return columns

    def _limits(self) -> TriggerLimits:
        options = self._options
        limits = TriggerLimits(
            max_offsets=options.read(table.MAX_OFFSETS_PER_TRIGGER),
            min_offsets=options.read(table.MIN_OFFSETS_PER_TRIGGER),
            max_bytes=options.read(table.MAX_BYTES_PER_TRIGGER),
            max_delay_ms=options.read_or(table.MAX_TRIGGER_DELAY, table.MAX_TRIGGER_DELAY_MS),
        )
        if (limits.min_offsets or 0) > (limits.max_offsets or limits.min_offsets or 0):
            options.mistakes.append(
                f"minOffsetsPerTrigger={limits.min_offsets} is higher than "
                f"maxOffsetsPerTrigger={limits.max_offsets}"
            )
        return limits

    def _about_query(self, starting: OffsetLimit, ending: OffsetLimit) -> None:
        """What this kind of query cannot be asked.

        Where the kind is not known yet, and there are mistakes already, those of a batch query
        that cannot be right in a stream either come along.
        """
        mistakes = self._options.mistakes
        rows: Sequence[Option[Any]] = (
            table.ENDING_OFFSETS,
            table.ENDING_TIMESTAMP,
            table.ENDING_BY_TIMESTAMP,
        )
        ends = [row.name for row in rows if self._options.has(row)]
        if self._query is Query.STREAM:
            mistakes += [
                f"{name} is not valid in a streaming query: it has no end" for name in ends
            ]
        if self._query is Query.BATCH or (self._query is Query.EITHER and ends):
            mistakes += batch_mistakes(starting, ending)


def is_security_name(name: str) -> bool:
    """Whether it is a setting of Kafka's clients for TLS or SASL, with `kafka.` in front."""
    return name.startswith(("kafka.security.", "kafka.ssl.", "kafka.sasl."))
