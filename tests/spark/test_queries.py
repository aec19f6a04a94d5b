"""What a query says and what it is answered: SQL, columns, filters, mistakes, secrets."""

import json
from typing import Any

import pytest

from tests.spark.comparison import fingerprint, kafka, varve
from tests.spark.tiered_topic import TieredBroker

pytestmark = pytest.mark.spark

SECRET = "a-secret-nobody-may-see"


def refusal(rows: Any) -> str:
    """What Spark says of a query that fails."""
    with pytest.raises(Exception, match=r".") as caught:
        rows().collect()
    return str(caught.value)


def tasks(rows: Any) -> int:
    """How many tasks gave rows."""
    return int(rows.selectExpr("spark_partition_id() AS task").distinct().count())


def test_a_view_is_created_in_sql(spark: Any, tiered: TieredBroker) -> None:
    """Nothing was registered."""
    options = ", ".join(f"`{name}` '{text}'" for name, text in tiered.options.items())
    spark.sql(
        f"CREATE TEMPORARY VIEW bucket_orders USING varve OPTIONS ({options}, subscribe 'orders', "
        "tier 'bucket', includeHeaders 'true')"
    )
    [row] = spark.sql("SELECT count(*) AS rows FROM bucket_orders").collect()
    assert row["rows"] == varve(spark, tiered, subscribe="orders").count()


def test_columns_that_are_named_are_read_alone(spark: Any, tiered: TieredBroker) -> None:
    options = {"subscribe": "orders", "includeHeaders": "false"}
    few = spark.read.format("varve").options(
        **tiered.options, subscribe="orders", columns="offset,partition,headers"
    )
    assert few.load().columns == ["offset", "partition", "headers"]
    ends = {
        str(one.partition): end
        for one, end in tiered.bucket_ends("orders", "read_uncommitted").items()
    }
    theirs = kafka(
        spark, tiered, subscribe="orders", endingOffsets=json.dumps({"orders": ends})
    ).select("offset", "partition", "headers")
    assert fingerprint(few.load()) == fingerprint(theirs)
    assert varve(spark, tiered, **options).columns[-1] == "timestampType"


def test_batch_metadata_tells_of_transactions(spark: Any, tiered: TieredBroker) -> None:
    rows = varve(spark, tiered, subscribe="orders", batchMetadata="true")
    [row] = rows.selectExpr(
        "count_if(transactional) AS transactional",
        "max(leaderEpoch) AS epoch",
        "count_if(transactional AND producerId < 0) AS odd",
        "min(tier) AS tier",
    ).collect()
    assert row["transactional"] > 0
    assert row["odd"] == 0
    assert row["epoch"] >= 1
    assert row["tier"] == "bucket"


@pytest.mark.parametrize(
    "condition",
    [
        "partition = 1 AND offset >= 300 AND offset < 700",
        "topic = 'orders' AND offset IN (5, 6)",
        "partition IN (0, 2) AND offset <= 40",
        "timestamp >= timestamp_millis(1700000005000) AND partition = 0",
        "timestamp > timestamp_millis(1700000005000) AND key IS NOT NULL",
        "topic = 'nothing'",
        "offset = 3 OR partition = 1",
    ],
)
def test_pushed_filters_change_no_row(spark: Any, tiered: TieredBroker, condition: str) -> None:
    plain = varve(spark, tiered, subscribe="orders").where(condition)
    pushed = varve(spark, tiered, subscribe="orders", pushFilters="true").where(condition)
    assert fingerprint(pushed) == fingerprint(plain)


def test_pushed_filters_choose_what_is_read(spark: Any, tiered: TieredBroker) -> None:
    given = {"subscribe": "orders", "pushFilters": "true"}
    few = varve(spark, tiered, **given).where("partition = 1 AND offset < 10")
    assert tasks(few) == 1
    assert tasks(varve(spark, tiered, **given)) > 3


def test_all_mistakes_come_at_once(spark: Any, tiered: TieredBroker) -> None:
    said = refusal(
        lambda: varve(
            spark,
            tiered,
            subscribe="orders",
            subscribePattern="o(",
            maxPartitionByte="1",
            isolationLevel="commited",
        )
    )
    for part in (
        "subscribe and subscribePattern contradict",
        "is maxPartitionBytes meant?",
        "isolationLevel is 'commited'",
    ):
        assert part in said


def test_a_missing_key_pair_is_told_by_its_name_before_any_task(
    spark: Any, tiered: TieredBroker
) -> None:
    tracker = spark.sparkContext.statusTracker()
    spark.sparkContext.setJobGroup("no key", "no key")
    said = refusal(lambda: varve(spark, tiered, subscribe="orders", keyPairs="other=/none.pem"))
    assert "other" in said
    without = {**tiered.options, "subscribe": "orders"}
    del without["keyPairs"]
    said = refusal(lambda: spark.read.format("varve").options(**without).load())
    assert "'pair'" in said
    assert tracker.getJobIdsForGroup("no key") == []


def test_a_topic_that_is_not_there_is_told(spark: Any, tiered: TieredBroker) -> None:
    assert "there is no topic nothing" in refusal(lambda: varve(spark, tiered, subscribe="nothing"))


def test_offsets_outside_of_the_log_are_told(spark: Any, tiered: TieredBroker) -> None:
    given = {
        "subscribe": "stamped",
        "endingOffsets": '{"stamped":{"0":1000000}}',
    }
    said = refusal(lambda: varve(spark, tiered, **given))
    assert "stamped-0: offsets" in said
    assert "999999 are lost" in said
    lenient = varve(spark, tiered, **given, failOnDataLoss="false")
    assert lenient.count() == varve(spark, tiered, subscribe="stamped").count()


def test_no_plan_and_no_error_has_a_secret(spark: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """Neither that of an option nor that of one whose name was misspelt."""
    given = {
        "path": "s3://no-such-bucket",
        "store.endpoint": "http://127.0.0.1:1",
        "store.region": "us-east-1",
        "store.accessKeyId": "AKIDEXAMPLE",
        "store.secretAccessKey": SECRET,
        "subscribe": "orders",
    }
    rows = spark.read.format("varve").options(**given).load()
    plan = rows._jdf.queryExecution().analyzed().toString()
    assert SECRET not in plan
    said = refusal(lambda: rows)
    assert "no-such-bucket" in said or "127.0.0.1:1" in said
    assert SECRET not in said
    said = refusal(
        lambda: spark.read.format("varve").options(**given, **{"store.secretKey": SECRET}).load()
    )
    assert "store.secretkey is no option" in said
    assert SECRET not in said
    captured = capfd.readouterr()
    assert SECRET not in captured.out + captured.err
