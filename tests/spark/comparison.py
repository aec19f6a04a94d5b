"""Rows of two reads compared: by a sum over all columns, and one by one."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.spark.tiered_topic import TieredBroker

ORDER = ("topic", "partition", "offset")


def kafka(spark: Any, broker: TieredBroker, **options: str) -> Any:
    """Rows by Spark's own connector."""
    given = {"kafka.bootstrap.servers": broker.node.address, "includeHeaders": "true", **options}
    return spark.read.format("kafka").options(**given).load()


def varve(spark: Any, broker: TieredBroker, **options: str) -> Any:
    """The same by ours, from the bucket alone unless told otherwise."""
    given = {
        **broker.options,
        "includeHeaders": "true",
        "tier": "bucket",
        **options,
    }
    return spark.read.format("varve").options(**given).load()


def fingerprint(rows: Any) -> tuple[int, int]:
    """How many rows, and a sum over all their columns that does not depend on their order."""
    columns = ", ".join(f"`{name}`" for name in rows.columns)
    [answer] = rows.selectExpr(
        "count(*) AS rows", f"sum(cast(xxhash64({columns}) AS decimal(38, 0))) AS hashes"
    ).collect()
    return answer["rows"], int(answer["hashes"] or 0)


def sorted_rows(rows: Any) -> Sequence[tuple[Any, ...]]:
    """All rows, in the order of their offsets."""
    return [tuple(row) for row in rows.orderBy(*ORDER).collect()]


def assert_same(ours: Any, theirs: Any) -> int:
    """Same schema, same rows, each once; returns how many."""
    assert ours.schema.simpleString() == theirs.schema.simpleString()
    mine, others = sorted_rows(ours), sorted_rows(theirs)
    for left, right in zip(mine, others, strict=False):
        assert left == right
    assert len(mine) == len(others)
    return len(mine)


def by_topic(offsets: Mapping[Any, int]) -> dict[str, dict[int, int]]:
    """Offsets by topic, then by partition."""
    result: dict[str, dict[int, int]] = {}
    for (topic, partition), offset in offsets.items():
        result.setdefault(topic, {})[partition] = offset
    return result
