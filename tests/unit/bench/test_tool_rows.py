"""What Kafka's tools print, as released 4.2 prints it, becomes figures."""

import pytest

from bench.tool_rows import ToolOutputError, parse_consumed, parse_latency, parse_produced

PRODUCED = """120001 records sent, 24000.2 records/sec (22.89 MB/sec), 901.2 ms avg latency, \
1500.0 ms max latency.
200000 records sent, 39541.3 records/sec (37.71 MB/sec), 514.80 ms avg latency, \
1303.00 ms max latency, 344 ms 50th, 1199 ms 95th, 1225 ms 99th, 1301 ms 99.9th.
"""

CONSUMED = """start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, \
rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec
WARNING: something between them
2026-11-23 03:55:11:120, 2026-11-23 03:55:19:001, 762.9395, 96.8075, 800000, 101509.9607, \
2670, 5211, 146.4094, 153521.3971
"""

LATENCY = """0\t1.5
Avg latency: 1.0312 ms
Percentiles: 50th = 0, 99th = 7, 99.9th = 11
"""


def test_the_last_line_of_the_producer_counts() -> None:
    """Lines of progress have no percentiles; a MB of the tool is a MiB."""
    assert parse_produced(PRODUCED) == pytest.approx(
        {"records": 200000, "mb_per_s": 39.541801, "avg_ms": 514.8, "p50_ms": 344, "p99_ms": 1225}
    )


def test_the_consumer_s_columns_are_found_by_name() -> None:
    """Its rate is that without the time for joining its group."""
    assert parse_consumed(CONSUMED) == pytest.approx(
        {"records": 800000, "mb_per_s": 146.4094 * 1.048576, "join_ms": 2670}
    )


def test_latency_has_an_average_and_whole_percentiles() -> None:
    assert parse_latency(LATENCY) == {"avg_ms": 1.0312, "p50_ms": 0, "p99_ms": 7}


@pytest.mark.parametrize("parse", [parse_produced, parse_consumed, parse_latency])
def test_another_text_is_shown(parse: object) -> None:
    assert callable(parse)
    with pytest.raises(ToolOutputError, match=r"(?s)no result of kafka-.*no brokers available"):
        parse("no brokers available\n")
