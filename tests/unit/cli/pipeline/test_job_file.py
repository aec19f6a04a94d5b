"""A job's file that cannot be read is the caller's mistake, said in one sentence."""

from pathlib import Path

import pytest

from cli.connection import MISTAKEN, CommandError
from cli.pipeline.job_file import load_job


def test_the_settings_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(
        f"source: {{location: '{tmp_path}/bucket', topic: t}}\n"
        f"value: {{format: json}}\nsink: {{type: delta, table: {tmp_path}/orders}}\n"
    )
    assert load_job(str(path)).source.topic == "t"


@pytest.mark.parametrize("content", [None, b"\xff\xfe"])
def test_what_is_no_readable_file(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "job.yaml"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(CommandError, match="cannot be read") as refused:
        load_job(str(path))
    assert refused.value.status == MISTAKEN
