"""What the log says of servers that fail, one after the other."""

import logging

import pytest

from broker.controller.store.etcd.endpoints import LOG_EVERY, Endpoints, EtcdAccess


def test_while_none_answers_the_log_is_not_flooded(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Every call leaves one server after the other, several times a second."""
    # gRPC lives in one loop of a process, and nothing is called here.
    monkeypatch.setattr(Endpoints, "_open", lambda *_: None)
    endpoints = Endpoints(EtcdAccess(endpoints=("a:1", "b:2", "c:3")))
    caplog.set_level(logging.WARNING)
    for number in range(2 * LOG_EVERY):
        endpoints.leave(number % 3, "no connection")
    assert [line.message.split(" ")[9] for line in caplog.records] == [
        f"failed={count}" for count in (1, 2, 3, LOG_EVERY, 2 * LOG_EVERY)
    ]
    assert endpoints.failovers == 2 * LOG_EVERY
