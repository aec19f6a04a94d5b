"""Ratios are taken pair by pair, and goals look the right way."""

from pathlib import Path

import pytest

from bench.report import RowResult, summarize, table, write
from bench.rows import ROWS, Metric, Row

FASTER = Metric("rate", "req/s", "higher", 1.5)
CHEAPER = Metric("cpu", "s", "lower", 0.5)


@pytest.fixture
def result() -> RowResult:
    row = Row("row", "a row", (FASTER, CHEAPER))
    return RowResult(
        row,
        {
            "varve": [{"rate": 20, "cpu": 3}, {"rate": 90, "cpu": 3}, {"rate": 30, "cpu": 3}],
            "kafka": [{"rate": 10, "cpu": 10}, {"rate": 30, "cpu": 5}, {"rate": 30, "cpu": 4}],
        },
    )


def test_median_of_pairwise_ratios(result: RowResult) -> None:
    """2, 3 and 1 give 2; the ratio of medians, 1, would be something else."""
    rows = summarize([result], ["varve", "kafka"], {})["rows"]
    assert isinstance(rows, list)
    rate, cpu = rows[0]["metrics"]["rate"], rows[0]["metrics"]["cpu"]
    assert rate["ratios"] == [2, 3, 1]
    assert (rate["ratio_median"], rate["ratio_spread"], rate["reached"]) == (2, [1, 3], True)
    assert (cpu["ratio_median"], cpu["reached"]) == (0.6, False)


def test_table_says_what_was_missed(result: RowResult) -> None:
    """One line a metric, with its goal."""
    lines = table([result], ["varve", "kafka"]).splitlines()
    assert lines[2] == "| row | rate (req/s) | 30 | 30 | 2.00 | 1.00-3.00 | >= 1.5 | reached |"
    assert lines[3] == "| row | cpu (s) | 3 | 5 | 0.60 | 0.30-0.75 | <= 0.5 | **missed** |"


def test_failed_row_is_named(result: RowResult) -> None:
    """A row without figures does not vanish."""
    failed = RowResult(result.row, {"varve": [], "kafka": []}, error="it broke\nbadly")
    assert "| row | failed: it broke |" in table([failed], ["varve", "kafka"])


def test_files_are_written(result: RowResult, tmp_path: Path) -> None:
    """JSON, table and plot."""
    write([result], ["varve", "kafka"], {}, tmp_path, "name")
    assert sorted(p.suffix for p in tmp_path.iterdir()) == [".json", ".md", ".png"]


def test_row_names_are_unique_and_runnable() -> None:
    """Each row has one way to run."""
    assert len({row.name for row in ROWS}) == len(ROWS)
    assert all((row.run is None) != (row.run_own is None) for row in ROWS)
