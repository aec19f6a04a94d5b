"""The figures that the tests measured, printed at the end of the run."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

_figures = pytest.StashKey[list[str]]()

Note = Callable[..., None]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All of them watch what an attack costs: how long others wait, how much memory it takes."""
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker("measures")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_figures] = []


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for line in config.stash[_figures]:
        terminalreporter.write_line(f"hostile: {line}")


@pytest.fixture
def note(request: pytest.FixtureRequest) -> Note:
    """Tell a figure in the run's summary: `note(grown_mib=3.2)`."""

    def tell(**figures: object) -> None:
        shown = ", ".join(
            f"{name}={value:.1f}" if isinstance(value, float) else f"{name}={value}"
            for name, value in figures.items()
        )
        request.config.stash[_figures].append(f"{request.node.name}: {shown}")

    return tell
