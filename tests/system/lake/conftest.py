"""Kinds of tables, and where processes that are killed come from."""

import multiprocessing

import pytest

from tests.fakes.lake.tables import KINDS


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture(scope="session")
def context() -> multiprocessing.context.ForkServerContext:
    """Processes fork from one that has imported everything and has no thread."""
    found = multiprocessing.get_context("forkserver")
    modules = ("jobs", "keyed_log", "upkeep")
    work = [f"tests.fakes.lake.{name}" for name in modules]
    found.set_forkserver_preload([*work, "deltalake", "pyiceberg.catalog.sql"])
    return found
