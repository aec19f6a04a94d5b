"""What came out, as JSON, as a table and as a plot."""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.calibration import machine_line
from bench.rows import Metric, Row


@dataclass(slots=True)
class RowResult:
    """The samples of one row: per metric and broker, in the order of the pairs."""

    row: Row
    samples: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    calibrations: list[dict[str, float]] = field(default_factory=list)
    disturbed: int = 0
    error: str | None = None

    def values(self, broker: str, metric: str) -> list[float]:
        """One metric of one broker over all samples."""
        return [sample[metric] for sample in self.samples.get(broker, []) if metric in sample]

    def ratios(self, metric: str, first: str, second: str) -> list[float]:
        """First divided by second, pair by pair."""
        pairs = zip(self.values(first, metric), self.values(second, metric), strict=False)
        return [ours / theirs for ours, theirs in pairs if theirs]


def summarize(
    results: Sequence[RowResult], brokers: Sequence[str], settings: Mapping[str, object]
) -> dict[str, object]:
    """Everything that was measured, as plain data."""
    rows = []
    for result in results:
        metrics = {}
        for metric in result.row.metrics:
            entry: dict[str, object] = {
                "unit": metric.unit,
                "better": metric.better,
                **{broker: result.values(broker, metric.name) for broker in brokers},
            }
            ours = result.values("varve", metric.name)
            if metric.bound is not None and ours:
                entry |= {
                    "bound": metric.bound,
                    "within": metric.is_within(statistics.median(ours)),
                }
            if len(brokers) == 2:
                ratios = result.ratios(metric.name, *brokers)
                if ratios:
                    median = statistics.median(ratios)
                    entry |= {
                        "ratios": ratios,
                        "ratio_median": median,
                        "ratio_spread": [min(ratios), max(ratios)],
                        "goal": metric.goal,
                        "reached": metric.is_reached(median),
                    }
            metrics[metric.name] = entry
        rows.append(
            {
                "row": result.row.name,
                "title": result.row.title,
                "pinned": result.row.pinned,
                "disturbed_pairs": result.disturbed,
                "error": result.error,
                "calibration": result.calibrations,
                "metrics": metrics,
            }
        )
    return {"brokers": list(brokers), "settings": dict(settings), "rows": rows}


def _number(value: float) -> str:
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _goal(metric: Metric) -> str:
    sign = ">=" if metric.better == "higher" else "<="
    texts = []
    if metric.goal is not None:
        texts.append(f"{sign} {metric.goal:g}")
    if metric.bound is not None:
        texts.append(f"ours {sign} {metric.bound:g}")
    return ", ".join(texts)


def _verdict(metric: Metric, ratios: Sequence[float], ours: Sequence[float]) -> str:
    """Empty where nothing was asked for; missed when either the goal or the bound was."""
    verdicts = [metric.is_reached(statistics.median(ratios)) if ratios else None]
    verdicts.append(metric.is_within(statistics.median(ours)) if ours else None)
    known = [verdict for verdict in verdicts if verdict is not None]
    if not known:
        return ""
    return "reached" if all(known) else "**missed**"


def table(results: Sequence[RowResult], brokers: Sequence[str]) -> str:
    """A Markdown table: medians, the median of the pairwise ratios, its spread, the goal."""
    both = len(brokers) == 2
    head = ["row", "metric", *brokers, *(("ratio", "spread", "goal", "") if both else ())]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for result in results:
        if result.error:
            lines.append(f"| {result.row.name} | failed: {result.error.splitlines()[0]} |")
        for metric in result.row.metrics:
            values = [result.values(broker, metric.name) for broker in brokers]
            if not any(values):
                continue
            cells = [result.row.name, f"{metric.name} ({metric.unit})"]
            cells += [_number(statistics.median(v)) if v else "-" for v in values]
            if both:
                ratios = result.ratios(metric.name, *brokers)
                cells += (
                    [f"{statistics.median(ratios):.2f}", f"{min(ratios):.2f}-{max(ratios):.2f}"]
                    if ratios
                    else ["", ""]
                )
                ours = result.values("varve", metric.name)
                cells += [_goal(metric), _verdict(metric, ratios, ours)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def plot(results: Sequence[RowResult], brokers: Sequence[str], path: Path) -> None:
    """Advantage over the second broker per goal, on a logarithmic axis; 1 is a draw."""
    import matplotlib as mpl  # heavy: only this function needs it

    mpl.use("Agg")
    import matplotlib.pyplot as plt  # heavy: only this function needs it

    labels, advantages, goals = [], [], []
    for result in results:
        for metric in result.row.metrics:
            ratios = result.ratios(metric.name, *brokers)
            if metric.goal is None or not ratios:
                continue
            ratio = statistics.median(ratios)
            upward = metric.better == "higher"
            labels.append(f"{result.row.name}: {metric.unit}")
            advantages.append(ratio if upward else 1 / ratio)
            goals.append(metric.goal if upward else 1 / metric.goal)
    if not labels:
        return
    figure, axes = plt.subplots(figsize=(9, 0.42 * len(labels) + 1.6))
    positions = list(range(len(labels)))
    colours = ["#2a7f62" if a >= g else "#b3472f" for a, g in zip(advantages, goals, strict=True)]
    axes.barh(positions, [a - 1 for a in advantages], left=1, color=colours, height=0.6)
    axes.scatter(goals, positions, marker="|", s=160, color="black", zorder=3, label="goal")
    for position, advantage in zip(positions, advantages, strict=True):
        axes.annotate(
            f" {advantage:.2f}x ",
            (advantage, position),
            va="center",
            ha="left" if advantage >= 1 else "right",
            fontsize=8,
        )
    axes.set_xscale("log")
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(positions, labels, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"how many times better than {brokers[1]} ({brokers[0]} measured beside it)")
    axes.legend(loc="lower right", frameon=False)
    axes.margins(x=0.12)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def write(
    results: Sequence[RowResult],
    brokers: Sequence[str],
    settings: Mapping[str, object],
    directory: Path,
    name: str,
) -> str:
    """Write `<name>.json`, `<name>.md` and, for two brokers, `<name>.png`.

    Returns:
        The table, behind a line that says on what kind of machine it was measured.
    """
    directory.mkdir(parents=True, exist_ok=True)
    summary = summarize(results, brokers, settings)
    (directory / f"{name}.json").write_text(json.dumps(summary, indent=1) + "\n")
    taken = [one for result in results for one in result.calibrations]
    machine = machine_line(taken)
    text = f"{machine}\n\n{table(results, brokers)}" if machine else table(results, brokers)
    (directory / f"{name}.md").write_text(text)
    if len(brokers) == 2:
        plot(results, brokers, directory / f"{name}.png")
    return text
