"""No setting of the machine gets into these tests."""

import os

import pytest


@pytest.fixture(autouse=True)
def _no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in os.environ:
        if name.startswith("KAFKA_") or name == "CLUSTER_ID":
            monkeypatch.delenv(name)
