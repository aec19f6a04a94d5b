"""From settings to upkeep."""

from pathlib import Path

import pytest

from pipeline.lake.app.maintenance import group_settings, maintain_job
from pipeline.lake.errors import ForeignTableError
from pipeline.lake.settings.config import parse_job
from tests.fakes.lake.jobs import lake_job, run
from tests.fakes.lake.numbers_log import FakeLog
from tests.fakes.lake.tables import coordinates, open_sink, read_table

MIB = 1024 * 1024

JOB = """
name: orders-lake
source: {{topic: orders, location: "file:///nowhere"}}
sink: {{type: {kind}, table: "{root}/orders"{more}}}
runner: {{type: local}}
"""


@pytest.mark.parametrize("kind", ["delta", "parquet"])
def test_a_job_is_maintained_by_its_settings(kind: str, tmp_path: Path) -> None:
    """The log is not asked: nothing is at its location."""
    run(lake_job(kind, tmp_path, FakeLog({0: (0, 60)})))
    rows = coordinates(read_table(kind, tmp_path))
    config = parse_job(JOB.format(kind=kind, root=tmp_path, more=""))
    planned, _ = maintain_job(config, dry_run=True)
    assert (planned.groups, planned.compacted.made) == (1, 0)
    done, quarantine = maintain_job(config)
    assert done.compacted.made == 1
    assert (done.expired, quarantine.expired) == (0, 0)
    assert coordinates(read_table(kind, tmp_path)) == rows
    sink = open_sink(kind, tmp_path)
    assert len(sink.keys(sink.view())) == 1


def test_a_table_that_is_not_there_is_told(tmp_path: Path) -> None:
    config = parse_job(JOB.format(kind="parquet", root=tmp_path, more=""))
    with pytest.raises(ForeignTableError, match="run the job first"):
        maintain_job(config)


def test_what_is_small_follows_from_the_target(tmp_path: Path) -> None:
    config = parse_job(
        JOB.format(kind="parquet", root=tmp_path, more=", target_file_bytes: 32 MiB")
    )
    assert group_settings(config)[:3] == (32 * MIB, 16 * MIB, 5)
