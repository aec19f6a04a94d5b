"""Tables on real S3 servers: what a store of tables promises, and jobs that race.

`.ci/s3-servers` builds them and `make test-s3` runs this; see `docs/s3-servers.md`. Conditional
puts hold on all of them; what becomes of a table elsewhere is in the unit tests.
"""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from uuid import uuid4

import pytest

from bench.s3_server import SERVERS, is_built, s3_server
from pipeline.lake.app.assembly import run_job
from tests.contract import test_table_store as contract
from tests.fakes.lake.s3_jobs import BUCKET, job, read, rows_of, upload
from tests.fakes.lake.tables import KINDS, coordinates
from tests.fakes.lake.topic_bucket import LakeBucket, orders_bucket, record
from tests.fakes.s3.moto_server import make_bucket, s3_settings

pytestmark = pytest.mark.slow

PROMISES = (
    contract.test_a_published_file_is_whole_and_replaces,
    contract.test_a_scratch_file_is_in_no_listing,
    contract.test_keys_are_listed_in_order_from_where_one_wants,
    contract.test_what_is_not_there_is_none,
    contract.test_deleted_files_are_gone,
    contract.test_of_two_puts_if_absent_one_is_there,
    contract.test_a_put_that_is_there_already_is_done,
    contract.test_of_many_at_once_exactly_one_wins,
)


@pytest.fixture(scope="module", params=list(SERVERS))
def server(request: pytest.FixtureRequest) -> Iterator[str]:
    """Address of each."""
    name = request.param
    if not is_built(name):
        pytest.skip(f"{name} is not built: .ci/s3-servers says why")
    with s3_server(name) as url:
        asyncio.run(make_bucket(s3_settings(url, BUCKET)))
        yield url


def test_a_store_of_tables_keeps_its_promises(server: str) -> None:
    for promise in PROMISES:
        promise(contract.open_s3(server, BUCKET, uuid4().hex))


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_has_every_row_of_a_log_in_s3_once(kind: str, server: str, tmp_path: Path) -> None:
    """Read from there and written there."""
    prefix = uuid4().hex
    bucket = asyncio.run(orders_bucket(tmp_path / "bucket"))
    upload(tmp_path / "bucket", server, f"{prefix}/log")
    config = job(kind, server, prefix, tmp_path, source=f"{prefix}/log")
    run_job(config)
    assert coordinates(read(config)) == rows_of(bucket)
    more(bucket, tmp_path, server, prefix)
    run_job(config)
    assert coordinates(read(config)) == rows_of(bucket)


def more(bucket: LakeBucket, root: Path, url: str, prefix: str) -> None:
    """A further segment, with a time of its own."""
    bucket.write([record(n) for n in range(400, 460)])
    asyncio.run(bucket.copy())
    upload(root / "bucket", url, f"{prefix}/log")


@pytest.mark.parametrize("kind", KINDS)
def test_jobs_that_race_make_one_table(kind: str, server: str, tmp_path: Path) -> None:
    """Processes, in small batches: each commit is somebody's, no row is lost or there twice."""
    prefix = uuid4().hex
    bucket = asyncio.run(orders_bucket(tmp_path / "bucket"))
    upload(tmp_path / "bucket", server, f"{prefix}/log")
    given = (kind, server, prefix, tmp_path)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as processes:
        batches = sum(processes.map(keep, [given, given]))
    assert batches >= 2
    assert coordinates(read(job(*given))) == rows_of(bucket)


def keep(given: tuple[str, str, str, Path]) -> int:
    """One job, until the table has all; how many batches it committed."""
    small = "batch: {max_bytes: 2 KiB, retries: 8}\n"
    return run_job(job(*given, source=f"{given[2]}/log", more=small))
