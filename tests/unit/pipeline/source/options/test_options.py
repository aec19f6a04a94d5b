"""Options of a read, checked whole."""

import pickle
from typing import Any

import pytest

from pipeline.plan.errors import OptionsError
from pipeline.source.options.offset_limits import (
    Earliest,
    GlobalTime,
    Latest,
    SpecificOffsets,
    SpecificTimes,
)
from pipeline.source.options.options import Query, SourceOptions, parse_options
from pipeline.source.options.topics import Subscribed
from storage.types.topic_partition import TopicPartition

SECRET = "s3cr3t-value"
LEAST = {"path": "file:///tier", "subscribe": "orders"}


def read(query: Query = Query.BATCH, /, **given: str) -> SourceOptions:
    return parse_options({**LEAST, **given}, query)


def mistakes(given: dict[str, str], query: Query = Query.BATCH) -> tuple[str, ...]:
    with pytest.raises(OptionsError) as caught:
        parse_options(given, query)
    return tuple(caught.value.mistakes)


def test_defaults_are_those_of_the_kafka_source() -> None:
    options = read()
    assert options.topics == Subscribed(("orders",))
    assert (options.starting, options.ending) == (Earliest(), Latest())
    assert not options.read_committed
    assert options.fail_on_data_loss
    assert "headers" not in options.columns
    assert options.max_partition_bytes == 128 << 20
    assert options.bootstrap_servers == ()


def test_a_stream_begins_at_the_latest_offset() -> None:
    assert read(Query.STREAM).starting == Latest()


def test_names_come_in_lower_case() -> None:
    """Spark's `dict(options)` has them so; none may be ignored for it."""
    options = read(isolationlevel="READ_COMMITTED", includeheaders="true", minpartitions="4")
    assert options.read_committed
    assert options.columns[-1] == "headers"
    assert options.min_partitions == 4


def test_every_mistake_is_in_one_error() -> None:
    said = mistakes(
        {
            "path": "ftp://there",
            "subscribe": "orders",
            "startingoffsets": "{",
            "isolationlevel": "committed",
            "maxpartitionbytes": "many",
            "includeheader": "true",
            "columns": "key,size",
            "minoffsetspertrigger": "5",
            "maxoffsetspertrigger": "4",
        }
    )
    for part in (
        "ftp://there",
        "startingOffsets expects",
        "isolationLevel is 'committed'",
        "maxPartitionBytes is 'many'",
        "includeheader is no option of varve; is includeHeaders meant?",
        "columns names size",
        "minOffsetsPerTrigger=5 is higher than maxOffsetsPerTrigger=4",
    ):
        assert any(part in mistake for mistake in said), part
    assert len(said) == 7


@pytest.mark.parametrize(
    ("given", "mistake"),
    [
        ({}, "one of subscribe, subscribePattern and assign must be given"),
        (
            {"subscribe": "a", "subscribepattern": "b"},
            "subscribe and subscribePattern contradict each other",
        ),
        ({"subscribe": "a", "assign": '{"a":[0]}'}, "subscribe and assign contradict"),
        (
            {
                **LEAST,
                "isolationlevel": "read_committed",
                "kafka.isolation.level": "read_uncommitted",
            },
            "contradict each other",
        ),
        ({"subscribe": "a,b", "topicid": "A" * 22}, "topicId names one topic's incarnation"),
        ({"subscribepattern": ".*", "topicid": "A" * 22}, "topicId names one topic's"),
        ({**LEAST, "includeheaders": "true", "columns": "key"}, "includeHeaders=true contradicts"),
        ({**LEAST, "includeheaders": "false", "columns": "headers"}, "includeHeaders=false"),
        ({**LEAST, "batchmetadata": "true", "columns": "key"}, "batchMetadata=true contradicts"),
        ({**LEAST, "store.endpoint": "http://s"}, "of no meaning for a directory"),
        ({**LEAST, "startingoffsets": '{"other":{"0":1}}'}, "startingOffsets names other-0"),
        ({**LEAST, "startingoffsets": '{"other":{"0":1}}'}, "orders is missing"),
        (
            {**LEAST, "startingoffsetsbytimestamp": '{"other":{"0":1}}'},
            "startingOffsetsByTimestamp names other-0",
        ),
        (
            {"path": "/t", "assign": '{"a":[0,1]}', "startingoffsets": '{"a":{"0":1}}'},
            "a-1 is missing",
        ),
    ],
)
def test_contradictions_are_mistakes(given: dict[str, str], mistake: str) -> None:
    assert any(mistake in said for said in mistakes({"path": "/tier", **given}))


def test_of_times_no_special_offset_is_offered() -> None:
    """They begin at 0: -1 and -2, which stand for offsets, would be the next mistake."""
    given = {"path": "/tier", "subscribe": "a,b", "startingOffsetsByTimestamp": '{"a":{"0":5}}'}
    assert mistakes(given) == (
        "startingOffsetsByTimestamp must name every partition; b is missing",
    )
    given = {"path": "/tier", "subscribe": "a,b", "startingOffsets": '{"a":{"0":5}}'}
    assert mistakes(given) == (
        "startingOffsets must name every partition (-1: latest, -2: earliest); b is missing",
    )


def test_the_tier_says_what_must_be_given() -> None:
    assert "tier=auto needs a path" in mistakes({"subscribe": "a"})[0]
    assert mistakes({"subscribe": "a", "tier": "broker"}) == (
        "tier=broker needs kafka.bootstrap.servers",
    )
    broker = parse_options(
        {"subscribe": "a", "tier": "broker", "kafka.bootstrap.servers": "h:1, h:2"}
    )
    assert broker.bucket is None
    assert broker.bootstrap_servers == ("h:1", "h:2")


def test_what_is_no_address_is_a_mistake_like_others() -> None:
    """Told with the rest and before anything is asked: a job would take it for an outage."""
    said = mistakes({**LEAST, "kafka.bootstrap.servers": "h:1,two,h:65536", "minPartitions": "0"})
    assert said == (
        "kafka.bootstrap.servers has 'two', 'h:65536', where host:port is expected",
        "minPartitions is 0 and must be positive",
    )
    known = read(**{"kafka.bootstrap.servers": "PLAINTEXT://h:1, [::1]:9092"})
    assert known.bootstrap_servers == ("PLAINTEXT://h:1", "[::1]:9092")


def test_the_tier_alone_decides_who_is_asked() -> None:
    """One word is changed to try the other way; the rest of the options may stay."""
    both = {**LEAST, "kafka.bootstrap.servers": "h:1"}
    assert parse_options({**both, "tier": "bucket"}).bootstrap_servers == ()
    assert parse_options({**both, "tier": "broker"}).bucket is None
    auto = parse_options(both)
    assert auto.bucket is not None
    assert auto.bootstrap_servers == ("h:1",)


def test_batch_and_stream_have_mistakes_of_their_own() -> None:
    assert (
        "cannot be latest in a batch query" in mistakes({**LEAST, "startingoffsets": "latest"})[0]
    )
    assert read(Query.STREAM, startingoffsets="latest").starting == Latest()
    for name, text in (
        ("endingOffsets", "latest"),
        ("endingTimestamp", "5"),
        ("endingOffsetsByTimestamp", '{"orders":{"0":5}}'),
    ):
        said = mistakes({**LEAST, name: text}, Query.STREAM)
        assert said == (f"{name} is not valid in a streaming query: it has no end",)


def test_columns_can_be_asked_before_the_kind_of_query_is_known() -> None:
    """Spark wants the schema first: what is right for one kind must pass."""
    assert parse_options({**LEAST, "startingoffsets": "latest"}).columns[0] == "key"
    assert parse_options({**LEAST, "endingoffsets": "latest"}).columns[0] == "key"


def test_a_time_for_all_is_stronger_than_times_and_those_than_offsets() -> None:
    """As in Spark's Kafka source; the weaker ones must be right all the same."""
    times = '{"orders":{"0":7}}'
    assert read(startingtimestamp="5", startingoffsetsbytimestamp=times).starting == GlobalTime(5)
    partition = TopicPartition("orders", 0)
    given = {"startingoffsetsbytimestamp": times, "startingoffsets": "earliest"}
    assert read(**given).starting == SpecificTimes({partition: 7})
    assert read(startingoffsets=times).starting == SpecificOffsets({partition: 7})
    assert mistakes({**LEAST, "startingtimestamp": "5", "startingoffsets": "{"})


def test_other_settings_of_kafka_have_no_effect_and_are_named() -> None:
    """With those that steer the consumer of Spark's Kafka source."""
    options = read(**{"kafka.group.id": "g", "groupidprefix": "p", "kafka.max.poll.records": "1"})
    assert options.without_effect == ("kafka.group.id", "groupIdPrefix", "kafka.max.poll.records")


def test_limits_of_triggers_have_no_effect_in_a_batch_query() -> None:
    given = {"maxoffsetspertrigger": "5", "maxtriggerdelay": "1m"}
    assert read(**given).without_effect == ("maxOffsetsPerTrigger", "maxTriggerDelay")
    stream = read(Query.STREAM, **given)
    assert stream.without_effect == ()
    assert stream.limits.max_offsets == 5
    assert stream.limits.max_delay_ms == 60_000


def test_what_the_kafka_source_refuses_is_refused() -> None:
    said = mistakes({**LEAST, "kafka.auto.offset.reset": "latest"})
    assert "startingOffsets" in said[0]


def test_security_the_broker_has_not_is_refused_where_it_is_asked() -> None:
    """Never silently left out; without a broker it does not matter."""
    given = {
        **LEAST,
        "kafka.bootstrap.servers": "h:1",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.jaas.config": SECRET,
    }
    said = mistakes(given)
    assert "kafka.sasl.jaas.config, kafka.security.protocol" in said[0]
    assert SECRET not in said[0]
    assert parse_options({**given, "tier": "bucket"}).bootstrap_servers == ()
    plain = {**LEAST, "kafka.bootstrap.servers": "h:1", "kafka.security.protocol": "plaintext"}
    assert parse_options(plain).bootstrap_servers == ("h:1",)


def test_no_text_has_a_secret() -> None:
    """Not the options' own, nor an error about others, nor about a name that was misspelt."""
    given = {
        "path": "s3://bucket/prefix",
        "subscribe": "orders",
        "store.accesskeyid": "AKIDEXAMPLE",
        "store.secretaccesskey": SECRET,
    }
    options = parse_options(given)
    assert SECRET not in repr(options)
    assert SECRET not in str(options.bucket)
    misspelt = {**given, "store.secretacceskey": SECRET, "minpartitions": "x"}
    for said in mistakes(misspelt):
        assert SECRET not in said


def test_options_are_pickled() -> None:
    options = read(includeheaders="true", keypairs="a=/k/a.pem")
    assert pickle.loads(pickle.dumps(options)) == options


@pytest.mark.parametrize("name", ["topicId", "store.pathStyle", "maxTriggerDelay", "pushFilters"])
def test_an_unreadable_value_names_its_option(name: str) -> None:
    given: dict[str, Any] = {**LEAST, name.lower(): "?"}
    assert any(said.startswith(name) for said in mistakes(given))
