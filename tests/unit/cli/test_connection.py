"""What goes wrong becomes one line and an exit status; clients are closed."""

import argparse
import socket
import threading
from collections.abc import Callable

import pytest

from cli import connection
from cli.connection import (
    CommandError,
    add_connection_arguments,
    answer_text,
    answering,
    check_answer,
    check_reachable,
    client,
    error_text,
    exit_status,
)
from tests.fakes.kafka.library_clients import FakeCluster, error_class


def _parse(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_connection_arguments(parser)
    return parser.parse_args(words)


def test_the_default_is_the_brokers_default() -> None:
    """`varve serve` and `varve topics list` find each other without options."""
    assert _parse().bootstrap_server == "127.0.0.1:9092"


@pytest.mark.parametrize("text", ["h:1", "h:1,i:2", "[::1]:9092"])
def test_addresses_are_host_and_port(text: str) -> None:
    """One or several."""
    assert _parse("--bootstrap-server", text).bootstrap_server == text


@pytest.mark.parametrize("text", ["h", "h:", ":1", "h:x", "h:0", "h:65536", "h:1,i"])
def test_other_addresses_are_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    """At once, with what is wrong."""
    with pytest.raises(SystemExit):
        _parse("--bootstrap-server", text)
    assert "is not host:port" in capsys.readouterr().err


def test_one_server_is_not_asked() -> None:
    """There is no choice: the library says what is wrong with it."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        assert answering(address) == address


def test_the_first_server_that_answers_is_taken() -> None:
    """One that accepts connections need not answer."""
    with (
        socket.create_server(("127.0.0.1", 0)) as silent,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):

        def serve(one: socket.socket, answer: bytes, connections: int) -> None:
            for _ in range(connections):
                accepted, _ = one.accept()
                with accepted:
                    accepted.recv(100)
                    accepted.sendall(answer)

        # The first one is connected to once more, to find out whether any listens.
        threads = [
            threading.Thread(target=serve, args=(silent, b"", 2)),
            threading.Thread(target=serve, args=(server, b"\0", 1)),
        ]
        for thread in threads:
            thread.start()
        first, second = (f"127.0.0.1:{one.getsockname()[1]}" for one in (silent, server))
        assert answering(f"{first},{second}") == second
        for thread in threads:
            thread.join()


def test_servers_of_which_none_answers_are_left_to_the_library(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One may only be slow."""
    monkeypatch.setattr(connection, "ANSWER_TIMEOUT_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as hung:
        address = f"127.0.0.1:{hung.getsockname()[1]}"
        assert answering(f"{address},{address}") == f"{address},{address}"


def test_nobody_listening_is_said_with_the_reason() -> None:
    """And what to do about it."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        with pytest.raises(CommandError, match=f"no broker at {address}: Connection refused"):
            check_reachable(address)


def test_one_of_several_addresses_is_enough() -> None:
    """As for every Kafka client."""
    with socket.socket() as unused, socket.create_server(("127.0.0.1", 0)) as server:
        unused.bind(("127.0.0.1", 0))
        ports = [one.getsockname()[1] for one in (unused, server)]
        check_reachable(",".join(f"127.0.0.1:{port}" for port in ports))


def test_clients_are_closed_whatever_happens() -> None:
    """Their threads would keep the process."""
    cluster = FakeCluster()
    with pytest.raises(ZeroDivisionError), client(cluster.admin, _parse(), acks=1):
        raise ZeroDivisionError
    assert cluster.closed == 1
    assert cluster.opened[0]["bootstrap_servers"] == "127.0.0.1:9092"
    assert cluster.opened[0]["acks"] == 1


def _raising(error: BaseException) -> Callable[[], int]:
    def action() -> int:
        raise error

    return action


def test_expected_failures_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """Ours and the client library's; no traceback."""
    assert exit_status(lambda: 7) == 7
    assert exit_status(_raising(CommandError("no luck"))) == 1
    assert exit_status(_raising(CommandError("not so", 2))) == 2
    assert exit_status(_raising(error_class(29)("Request(...) failed with Response(...)"))) == 1
    lines = capsys.readouterr().err.splitlines()
    assert lines[:2] == ["varve: no luck", "varve: not so"]
    assert lines[2].endswith("(TOPIC_AUTHORIZATION_FAILED)")
    assert "Request" not in lines[2]


def test_a_cluster_without_a_controller_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """The library's error has one word, `controller`."""
    from kafka.errors import NodeNotReadyError

    assert exit_status(_raising(NodeNotReadyError("controller"))) == 1
    assert "name no controller" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("error", "who"),
    [("No node_id provided", "no broker can be reached"), (2, "broker 2 cannot be reached")],
)
def test_addresses_that_are_advertised_and_not_reached_are_told_of(
    error: str | int, who: str
) -> None:
    """The address that was given answers: nothing else points at the setting."""
    from kafka.errors import NodeNotReadyError

    assert error_text(NodeNotReadyError(error)) == (
        f"{who} from here by the address that it advertises: see advertised.listeners in its "
        "settings"
    )


def test_our_own_mistakes_are_not_hidden() -> None:
    """A bug shows its traceback; a closed pipe and Ctrl-C are for `cli.main`."""
    for error in (ValueError("bug"), BrokenPipeError(), KeyboardInterrupt()):
        with pytest.raises(type(error)):
            exit_status(_raising(error))


def test_errors_no_broker_sent_keep_their_text() -> None:
    """In one line."""
    from kafka.errors import KafkaTimeoutError, UnknownBrokerIdError

    assert "did not answer in time: no\tmetadata".replace("\t", " ") in error_text(
        KafkaTimeoutError("no\nmetadata")
    )
    assert error_text(UnknownBrokerIdError()) == "UnknownBrokerIdError"


def test_answers_say_what_the_broker_said() -> None:
    """Its own sentence first, else ours with the subject; a code nobody knows by its number."""
    check_answer("topic 't'", 0)
    assert answer_text("topic 't'", 36, "It is there.") == "It is there (TOPIC_ALREADY_EXISTS)"
    assert answer_text("topic 't'", 36).startswith("topic 't': ")
    assert answer_text("topic 't'", 3, "Hosts not.") == "topic 't' does not exist"
    assert answer_text("topic 't'", 12345) == "topic 't': error 12345"
    with pytest.raises(CommandError, match="does not exist"):
        check_answer("topic 't'", 3)
