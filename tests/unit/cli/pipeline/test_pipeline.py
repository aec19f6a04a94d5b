"""`varve pipeline` as its users see it: a bucket in a directory, a table in another."""

import argparse
import builtins
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from cli.pipeline import pipeline
from cli.pipeline.run import stopped_by_signals
from tests.fakes.lake.tables import read_table
from tests.fakes.lake.topic_bucket import orders_bucket
from tests.unit.cli.commands import Outcome


@pytest.fixture
def varve(capsys: pytest.CaptureFixture[str]) -> Any:
    def typed(*words: str) -> Outcome:
        parser = argparse.ArgumentParser("varve pipeline")
        pipeline.add_arguments(parser)
        status = pipeline.run(parser.parse_args(words))
        shown = capsys.readouterr()
        return Outcome(status, shown.out, shown.err)

    return typed


@pytest.fixture
async def job(tmp_path: Path) -> str:
    await orders_bucket(tmp_path / "bucket")
    path = tmp_path / "job.yaml"
    path.write_text(
        f"source: {{location: '{tmp_path}/bucket', topic: t}}\n"
        f"value: {{format: json}}\nsink: {{type: delta, table: {tmp_path}/orders}}\n"
        f"runner: {{type: local}}\n"
    )
    return str(path)


def test_a_plan_is_shown_and_nothing_is_made(varve: Any, job: str, tmp_path: Path) -> None:
    shown = varve("plan", job)
    assert shown.status == 0
    assert shown.cells[0][:3] == ["PARTITION", "FROM", "TO"]
    assert shown.cells[1][:5] == ["t-0", "0", "133", "1", "4"]
    assert shown.cells[1][-1] == "100%"
    assert varve("plan", job, "--json").document[0]["segments"] == 4
    assert not (tmp_path / "orders").exists()


def test_a_job_runs_and_tells_where_it_is(varve: Any, job: str, tmp_path: Path) -> None:
    before = varve("status", job)
    assert "no table yet" in before.out
    assert before.cells[2][:4] == ["t-0", "-", "133", "133"]
    ran = varve("run", job, "--quiet")
    assert (ran.status, ran.out) == (0, "varve-t: 1 batches committed\n")
    assert read_table("delta", tmp_path).num_rows > 100
    after = varve("status", job, "--json").document
    assert after["batch"] == 1
    assert [p["lagRecords"] for p in after["partitions"]] == [0]
    assert (after["table"]["files"], after["table"]["small_files"]) == (1, 1)
    assert "1 files, " in varve("status", job).out
    assert varve("plan", job).out == "the table is up to date with the log\n"


def test_a_table_is_kept_in_shape(varve: Any, job: str, tmp_path: Path) -> None:
    """A batch of some bytes at a time makes many files; a dry run says so and leaves them."""
    Path(job).write_text(f"{Path(job).read_text()}batch: {{max_bytes: 300}}\n")
    refused = varve("maintain", job)
    assert (refused.status, "run the job first" in refused.err) == (1, True)
    assert varve("run", job, "--quiet").status == 0
    rows = read_table("delta", tmp_path).num_rows
    many = varve("status", job, "--json").document["table"]["files"]
    assert many > 5
    dry = varve("maintain", job, "--dry-run")
    assert "1 groups of small files would be put together" in dry.out
    assert varve("status", job, "--json").document["table"]["files"] == many
    done = varve("maintain", job)
    assert done.status == 0
    assert f"{many} files (" in done.out
    assert ") put together into 1 (" in done.out
    assert varve("status", job, "--json").document["table"]["files"] == 1
    assert read_table("delta", tmp_path).num_rows == rows
    again = varve("maintain", job, "--json").document
    assert [table["compacted"]["made"] for table in again["tables"]] == [0, 0]
    assert varve("reconcile", job).status == 0


def test_quarantined_records_are_tried_again(varve: Any, job: str, tmp_path: Path) -> None:
    """All of them were put aside, as the job took them for what they are not."""
    right = Path(job).read_text()
    ddl = tmp_path / "t.ddl"
    ddl.write_text("id bigint, name string")
    right = right.replace("{format: json}", f"{{format: json, schema: {ddl}}}")
    Path(job).write_text(right.replace("format: json,", "format: json, wire: confluent,"))
    assert varve("run", job, "--quiet").status == 0
    held = read_table("delta", tmp_path, "orders_quarantine").num_rows
    assert held > 100
    again = varve("replay-quarantine", job)
    assert f"0 rows committed to the table, {held} still do not fit" in again.out
    assert "does not begin with a zero byte and a schema id" in again.out
    Path(job).write_text(right)
    replayed = varve("replay-quarantine", job, "--json").document
    assert replayed["rows"] + replayed["left"] == held
    assert replayed["rows"] == read_table("delta", tmp_path).num_rows > 100
    Path(job).write_text(right + "errors: {quarantine: fail}\n")
    refused = varve("replay-quarantine", job)
    assert (refused.status, "has no quarantine" in refused.err) == (1, True)


def test_a_table_is_compared_with_its_log(varve: Any, job: str, tmp_path: Path) -> None:
    """What differs is a status that scripts see."""
    assert "there is no table yet" in varve("reconcile", job).err
    assert varve("run", job, "--quiet").status == 0
    equal = varve("reconcile", job)
    assert equal.status == 0
    assert "0 ranges differ; 0 rows are older than the log" in equal.out
    (file,) = (path for path in (tmp_path / "orders").rglob("part-*.parquet"))
    table = pq.read_table(file)
    pq.write_table(table.slice(1), file)
    shown = varve("reconcile", job)
    assert shown.status == 1
    assert shown.cells[0][-3:] == ["QUARANTINE", "DIFFERS", "IN"]
    assert "rows" in " ".join(shown.cells[1])
    found = varve("reconcile", job, "--json").document
    assert found["equal"] is False
    assert found["ranges"][0]["log_rows"] > found["ranges"][0]["table_rows"]


def test_mistakes_come_at_once(varve: Any, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("source: {topik: t}\n")
    refused = varve("run", str(path))
    assert refused.status == 2
    assert f"3 mistakes in {path}" in refused.err
    assert "source.topik: is no setting; meant: topic" in refused.err
    assert varve("run", str(tmp_path / "none.yaml")).status == 2


def test_a_bucket_that_is_not_there_is_one_line(varve: Any, job: str, tmp_path: Path) -> None:
    (tmp_path / "bucket").rename(tmp_path / "elsewhere")
    refused = varve("run", job)
    assert refused.status == 1
    assert refused.err.count("\n") == 1
    assert "there is no directory" in refused.err


@pytest.mark.parametrize("module", ["pyspark", "deltalake", "pyarrow"])
def test_a_missing_library_is_one_line(
    varve: Any, job: str, monkeypatch: pytest.MonkeyPatch, module: str
) -> None:
    """It says what to install, all of it at once; the broker's environment has none of them."""
    original = builtins.__import__

    def refuse(name: str, *rest: Any, **more: Any) -> Any:
        if name.partition(".")[0] == module:
            raise ImportError(f"No module named {name!r}", name=name)
        return original(name, *rest, **more)

    from importlib import import_module

    def refuse_module(name: str, package: str | None = None) -> Any:
        if name.partition(".")[0] == module:
            raise ImportError(f"No module named {name!r}", name=name)
        return import_module(name, package)

    Path(job).write_text(Path(job).read_text().replace("local", "spark"))
    with monkeypatch.context() as patch:
        patch.setattr(builtins, "__import__", refuse)
        patch.setattr("pipeline.lake.app.locations.import_module", refuse_module)
        if module == "pyarrow":
            for name in [name for name in sys.modules if name.startswith("pipeline.lake")]:
                patch.delitem(sys.modules, name)
        refused = varve("run", job)
    assert (refused.status, refused.err) == (
        2,
        f"varve: {module} is not installed: pip install '.[lake]'\n",
    )


def test_nothing_is_imported_before_it_is_needed() -> None:
    """The broker's own commands start fast, and where nothing of this is installed."""
    code = (
        "import sys, cli.pipeline.pipeline, cli.main; "
        "print([m for m in ('pyspark', 'pyarrow', 'deltalake', 'pydantic') if m in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert shown.stdout == "[]\n"


def test_the_first_signal_asks_and_the_second_ends() -> None:
    stop = threading.Event()
    before = signal.getsignal(signal.SIGTERM)
    with stopped_by_signals(stop):
        signal.raise_signal(signal.SIGTERM)
        assert stop.is_set()
        assert signal.getsignal(signal.SIGTERM) == before
    assert signal.getsignal(signal.SIGTERM) == before
