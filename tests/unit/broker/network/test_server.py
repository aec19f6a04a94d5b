"""What the network layer says of its peers."""

import pytest

from broker.network import server
from broker.network.server import SYSTEM_BUFFER, buffer_bytes, memory_limit, memory_share, shown
from broker.runtime.logs import fields_of
from config.broker import BrokerConfig


@pytest.mark.parametrize(
    "client_id",
    ["producer-1", "a b", 'x reason="all is well"', "line\nbreak", " " * 32_000, "🦀" * 100, ""],
)
def test_a_client_id_is_one_short_word_in_a_log_line(client_id: str) -> None:
    """A stranger chooses it: it must not forge fields, break lines or cost time."""
    word = shown(client_id)
    assert word is not None
    assert len(word) <= 640
    line = f"connection closed client_id={word} reason=why"
    assert fields_of(line) == ("connection closed", [("client_id", word), ("reason", "why")])


def test_no_client_id_is_shown_as_none() -> None:
    assert shown(None) is None


def test_kafkas_default_leaves_buffers_to_the_system() -> None:
    config = BrokerConfig()
    assert buffer_bytes(config.socket_receive_buffer_bytes) == SYSTEM_BUFFER
    assert buffer_bytes(config.socket_send_buffer_bytes) == SYSTEM_BUFFER
    assert [buffer_bytes(size) for size in (-1, 0, 65_536)] == [-1, 0, 65_536]


def test_shares_are_of_what_the_process_may_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the machine's memory a quarter may be many times what its container has."""
    monkeypatch.setattr(server, "memory_bytes", lambda: 1 << 30)
    assert memory_limit(-1) == 256 << 20
    assert memory_limit(5_000) == 5_000
    assert memory_share(16) == 64 << 20
