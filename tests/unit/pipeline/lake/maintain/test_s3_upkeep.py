"""Upkeep of tables in S3: files are copied here to be put together, ages are the server's."""

import asyncio
import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import pytest

from pipeline.lake.app.assembly import run_job
from pipeline.lake.app.maintenance import maintain_job
from pipeline.lake.settings.config import JobConfig
from tests.fakes.lake.s3_jobs import BUCKET, job, read, rows_of
from tests.fakes.lake.tables import KINDS, coordinates
from tests.fakes.lake.topic_bucket import orders_bucket
from tests.fakes.s3.moto_server import make_bucket, s3_settings

T = TypeVar("T")


def elsewhere(work: Callable[[JobConfig], T], config: JobConfig) -> T:
    """In a process of its own: some of deltalake's calls do not let the server here have a turn."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(work, config).result()


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_table_in_s3_is_kept_in_shape(kind: str, moto_url: str, tmp_path: Path) -> None:
    asyncio.run(make_bucket(s3_settings(moto_url, BUCKET)))
    bucket = asyncio.run(orders_bucket(tmp_path / "bucket"))
    config = job(kind, moto_url, uuid4().hex, tmp_path)
    small = config.batch.model_copy(update={"max_bytes": 700})
    config = config.model_copy(update={"batch": small})
    assert elsewhere(run_job, config) > 5
    done, _ = elsewhere(maintain_job, config)
    assert done.compacted.replaced > 5
    assert done.compacted.made == 1
    assert coordinates(read(config)) == rows_of(bucket)
    again, _ = elsewhere(maintain_job, config)
    assert (again.groups, again.orphans, again.expired) == (0, 0, 0)
    assert elsewhere(run_job, config) == 0
