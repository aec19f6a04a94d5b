"""What tests of several folders share: tiers, effort of properties, servers that take seconds."""

# First, before anything of what may be compiled is imported.
from tests.code_path import CODE

# isort: split

import gc
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.etcd_server import NO_ETCD
from tests.effort import load_profile
from tests.fakes.s3.moto_server import moto_server
from tests.shares import SLOWER_FOLDERS
from tests.tiers import TIERS

load_profile()

TESTS = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test with the tier of its folder; `tests.tiers` says what of it runs when."""
    for item in items:
        folder = item.path.relative_to(TESTS).parts[0]
        if folder in SLOWER_FOLDERS:
            item.add_marker(SLOWER_FOLDERS[folder])
        if item.get_closest_marker("interop"):
            # kafka-python leaves sockets that were refused to the collector, which may run in any
            # later test of the process; brokers are processes of their own there.
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
        for tier in ("system", "interop"):
            if item.get_closest_marker(tier) and f"tests/{folder}" not in TIERS[tier].folders:
                raise pytest.UsageError(f"{item.nodeid}: tests.tiers looks for none of {tier} here")
        if item.get_closest_marker("merge") and folder in SLOWER_FOLDERS:
            raise pytest.UsageError(f"{item.nodeid}: without `quick` it is of a slower tier")
        if item.get_closest_marker("measures") and SLOWER_FOLDERS.get(folder) != "system":
            raise pytest.UsageError(f"{item.nodeid}: only tests of the system run alone")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Tests that call the collector, and its own runs, need not walk through all tests and modules.

    These are millions of objects, which stay to the end: a second for each call. While they become
    more and more it would walk through them again and again, for nothing: a fifth of that time.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--lake-kills", type=int, default=10, help="of each kind, in slow tests of lake jobs"
    )
    parser.addoption("--lake-seed", type=int, default=None, help="of what those tests draw")


@pytest.fixture(autouse=True)
def handler_of_sigterm_stays() -> Iterator[None]:
    """What a test lets handle SIGTERM must not handle it afterwards.

    Processes that later tests fork would have it, too, and not end when they are told to.
    """
    before = signal.getsignal(signal.SIGTERM)
    yield
    after = signal.getsignal(signal.SIGTERM)
    if after != before:
        signal.signal(signal.SIGTERM, before)
        # A loop that takes its handler away leaves none, also where the run has its own.
        if after != signal.SIG_DFL:
            pytest.fail("SIGTERM is handled otherwise than before this test")


@pytest.fixture(scope="session")
def moto_url() -> Iterator[str]:
    """Address of an S3 server that is there for the whole run; buckets are the tests' own."""
    with moto_server() as endpoint_url:
        yield endpoint_url


def pytest_report_header() -> str:
    return f"code: {CODE.describe()}"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say so where a real store was missing, and of what failed which code it was.

    Processes of both paths run side by side, and a quiet run prints no header.
    """
    if terminalreporter.stats.get("failed") or terminalreporter.stats.get("error"):
        terminalreporter.write_line(f"code: {CODE.describe()}")
    skipped = sum(
        isinstance(report.longrepr, tuple) and NO_ETCD in report.longrepr[2]
        for report in terminalreporter.stats.get("skipped", ())
    )
    if skipped:
        terminalreporter.write_line(f"etcd: {skipped} tests skipped, {NO_ETCD}")
