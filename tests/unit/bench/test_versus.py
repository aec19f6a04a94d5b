"""Rows beside an older commit: no worse than before is the goal, and each side its own source."""

from pathlib import Path

from bench.node import VarveNode
from bench.rows import Metric, Row
from bench.versus import DEFAULT_ROWS, ROWS, checked_out, in_instructions, without_goals


def test_goals_are_no_worse_than_before() -> None:
    row = Row(
        "row",
        "a row",
        (
            Metric("rate", "1/s", "higher", 1.5, bound=7),
            Metric("cpu", "s", "lower", 0.5),
            Metric("told", "s", "lower"),
        ),
    )
    rate, cpu, told = without_goals(row, 0.05).metrics
    assert (rate.goal, rate.bound, cpu.goal, told.goal) == (0.95, None, 1.05, None)


def test_costs_can_be_counted_and_rates_are_left_out_then() -> None:
    counted = [metric for row in ROWS for metric in in_instructions(row).metrics]
    costs = [metric for row in ROWS for metric in row.metrics if metric.unit.startswith("CPU ")]
    assert [metric.name for metric in counted] == [metric.name for metric in costs]
    assert {metric.unit for metric in counted} >= {"1e3 instructions/req", "1e9 instructions/GB"}


def test_default_rows_exist() -> None:
    assert set(DEFAULT_ROWS.split(",")) <= {row.name for row in ROWS}


def test_a_broker_runs_from_its_own_tree(tmp_path: Path) -> None:
    node = checked_out(tmp_path / "tree")(tmp_path / "node")
    assert node.environment()["PYTHONPATH"] == str(tmp_path / "tree")
    settings = VarveNode(tmp_path / "plain").command()[1:2]
    assert node.command()[4:5] == settings == ["serve"]
