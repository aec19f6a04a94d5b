"""Fenced brokers are not asked, and one that refuses does not end the command."""

from types import SimpleNamespace
from typing import Any

import pytest

from cli.admin.kafka_library import KafkaAdminClient, KafkaError
from cli.admin.serving_brokers import ServingAdminClient

SHOWN: dict[str, Any] = {
    "brokers": [
        {"broker_id": 1, "is_fenced": False},
        {"broker_id": 2, "is_fenced": True},
        {"broker_id": 3},
    ]
}


class Library:
    """The library's part of the client: it answers what the test says, and keeps what is asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: dict[str, Any] | None) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[str, Any]] = []
        self.closed = 0

        def opened(client: Any, **_settings: Any) -> None:
            client._manager = SimpleNamespace(cluster=SimpleNamespace(brokers=lambda: {1, 2, 3}))

        monkeypatch.setattr(KafkaAdminClient, "__init__", opened)
        monkeypatch.setattr(KafkaAdminClient, "close", lambda _client: self._close())
        monkeypatch.setattr(KafkaAdminClient, "describe_cluster", lambda _client: self._describe())
        monkeypatch.setattr(
            KafkaAdminClient,
            "describe_log_dirs",
            lambda _client, _partitions, brokers: self.asked.append(("log dirs", brokers)),
        )
        for name in ("list_groups", "list_transactions"):
            monkeypatch.setattr(
                KafkaAdminClient,
                name,
                lambda _client, brokers, name=name, **filters: self.asked.append(
                    (name, (brokers, filters))
                ),
            )

    def _close(self) -> None:
        self.closed += 1

    def _describe(self) -> dict[str, Any]:
        answer = self.answers.pop(0)
        if answer is None:
            raise KafkaError("111 ECONNREFUSED")
        return answer


def test_fenced_brokers_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metadata names them still, and they refuse every connection."""
    library = Library(monkeypatch, SHOWN)
    client = ServingAdminClient()
    client.describe_log_dirs({"t": [0]})
    client.list_groups(states_filter=["Empty"])
    client.list_transactions(producer_id_filters=[7])
    assert library.asked == [
        ("log dirs", [1, 3]),
        ("list_groups", ([1, 3], {"states_filter": ["Empty"]})),
        ("list_transactions", ([1, 3], {"producer_id_filters": [7]})),
    ]


def test_brokers_that_are_named_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a fenced one: the caller knows why."""
    library = Library(monkeypatch, SHOWN)
    client = ServingAdminClient()
    client.list_groups([2])
    client.describe_log_dirs(brokers=[2])
    assert library.asked == [("list_groups", ([2], {})), ("log dirs", [2])]


def test_another_broker_is_asked_where_one_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as Metadata names may have ended."""
    library = Library(monkeypatch, None, None, SHOWN)
    ServingAdminClient()
    assert (library.answers, library.closed) == ([], 0)


def test_a_cluster_without_an_answer_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the client's thread ends."""
    library = Library(monkeypatch, None, None, None, None)
    with pytest.raises(KafkaError, match="ECONNREFUSED"):
        ServingAdminClient()
    assert (library.answers, library.closed) == ([], 1)
