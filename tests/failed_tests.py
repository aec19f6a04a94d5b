"""A plugin of pytest that writes which tests failed to a file, one node id a line.

`tests.tiers` reads it, to try tests of whole brokers a second time. Nothing is written where a run
ended early: which tests it would still have failed is then not known.
"""

import os
from pathlib import Path

import pytest


class FailedTests:
    """Tests with a failed phase, in the order of their failures."""

    def __init__(self, path: Path, config: pytest.Config) -> None:
        self._path = path
        self._config = config
        self._failed: dict[str, None] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed[report.nodeid] = None

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        if exitstatus == pytest.ExitCode.TESTS_FAILED:
            # As a run from the same folder takes them; a node id counts from pytest's root.
            parts = (test.partition("::") for test in self._failed)
            root = self._config.rootpath
            tests = (os.path.relpath(root / path) + "::" + name for path, _, name in parts)
            self._path.write_text("".join(f"{test}\n" for test in tests))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--failed-to", type=Path, help="write the node ids of failed tests there")


def pytest_configure(config: pytest.Config) -> None:
    """Only where tests are reported: a process that is given its tests has a `workerinput`."""
    path = config.getoption("--failed-to")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(FailedTests(path, config), "failed_tests")
