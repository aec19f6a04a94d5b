"""Connections of commands to a broker: options, clients, errors.

A command raises `CommandError` with one line for the user; `exit_status` prints that line, and one
for whatever the client library raises, without a traceback. The broker is probed with a plain
TCP connection first: the library would try for seconds and then not say why.

Clients come from factories that are passed in, so tests run a command without a broker.
"""

import argparse
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from protocol.error_codes import ErrorCode

FAILED: Final = 1
"""Exit status when the broker is out of reach or refuses."""

MISTAKEN: Final = 2
"""Exit status when the options make no sense together, as for those argparse refuses."""

DEFAULT_ADDRESS: Final = "127.0.0.1:9092"
CONNECT_TIMEOUT_S: Final = 5.0
ANSWER_TIMEOUT_S: Final = 2.0
API_VERSIONS: Final = struct.pack(">ihhih", 10, 18, 0, 0, -1)
"""A request that every broker answers: ApiVersions v0, without a client id."""
BOOTSTRAP_TIMEOUT_MS: Final = 10_000
"""For a broker that accepts connections: its first answer, or it is no broker."""

ClientFactory = Callable[..., Any]
"""Takes the library's keyword settings, gives an open client with `close`."""


class CommandError(Exception):
    """The command cannot go on; the text is one line for the user."""

    def __init__(self, text: str, status: int = FAILED) -> None:
        super().__init__(text)
        self.status = status


def add_connection_arguments(parser: argparse.ArgumentParser, *, nested: bool = False) -> None:
    """Declare `--bootstrap-server` and `--json`.

    Args:
        parser: The parser of a command, or of one of its actions.
        nested: For an action: what is absent there does not undo what the command was given, so
            the options may stand before and after the action's name.
    """
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT",
        type=_addresses,
        default=argparse.SUPPRESS if nested else DEFAULT_ADDRESS,
        help=f"the broker, or several separated by commas (default {DEFAULT_ADDRESS})",
    )
    parser.add_argument(
        "--json",
        action="store_true",
        default=argparse.SUPPRESS if nested else False,
        help="print JSON",
    )


def _addresses(text: str) -> str:
    for part in text.split(","):
        if host_and_port(part) is None:
            raise argparse.ArgumentTypeError(f"{part!r} is not host:port")
    return text


def host_and_port(text: str) -> tuple[str, int] | None:
    """Parts of `host:port`, None when it is something else."""
    host, colon, port = text.strip().rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        return None
    return host.removeprefix("[").removesuffix("]"), int(port)


def check_reachable(addresses: str) -> None:
    """Connect to one of the servers and hang up.

    Raises:
        CommandError: None of them accepts a connection; the text has the system's reason.
    """
    reason = ""
    for part in addresses.split(","):
        target = host_and_port(part)
        assert target is not None, "the option's type has checked it"
        try:
            socket.create_connection(target, timeout=CONNECT_TIMEOUT_S).close()
        except OSError as error:
            reason = error.strerror or str(error)
        else:
            return
    raise CommandError(
        f"no broker at {addresses}: {reason} "
        "(`varve serve` starts one, --bootstrap-server names another)"
    )


def answering(addresses: str) -> str:
    """The first of several servers that answers; all of them where none does, or there is one.

    The library begins with any of its servers and stays with it: one that hangs accepts
    connections and answers nothing, until the library gives up on all of them.

    Raises:
        CommandError: None of them accepts a connection.
    """
    check_reachable(addresses)
    servers = addresses.split(",")
    if len(servers) == 1:
        return addresses
    return next(filter(_answers, servers), addresses)


def _answers(server: str) -> bool:
    target = host_and_port(server)
    assert target is not None, "the option's type has checked it"
    try:
        with socket.create_connection(target, timeout=CONNECT_TIMEOUT_S) as connection:
            connection.settimeout(ANSWER_TIMEOUT_S)
            connection.sendall(API_VERSIONS)
            return bool(connection.recv(1))
    except OSError:
        return False


def open_admin(**settings: Any) -> Any:
    """A `KafkaAdminClient`; raises CommandError when no broker listens."""
    settings["bootstrap_servers"] = answering(settings["bootstrap_servers"])
    from cli.admin.share_group_requests import ShareAdminClient

    return ShareAdminClient(**settings)


def open_producer(**settings: Any) -> Any:
    """A `KafkaProducer`; raises CommandError when no broker listens."""
    check_reachable(settings["bootstrap_servers"])
    from cli.admin.kafka_library import KafkaProducer

    return KafkaProducer(**settings)


def open_consumer(**settings: Any) -> Any:
    """A `KafkaConsumer` without a subscription; raises CommandError when no broker listens."""
    check_reachable(settings["bootstrap_servers"])
    from cli.admin.kafka_library import KafkaConsumer

    return KafkaConsumer(**settings)


@contextmanager
def client(factory: ClientFactory, args: argparse.Namespace, **settings: Any) -> Iterator[Any]:
    """A client of the broker that the options name; closed at the end."""
    opened = factory(
        bootstrap_servers=args.bootstrap_server,
        client_id="varve-cli",
        bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS,
        **settings,
    )
    try:
        yield opened
    finally:
        opened.close()


def exit_status(action: Callable[[], int]) -> int:
    """Run a command's action; what goes wrong becomes one line on standard error.

    Returns:
        The action's own status, or that of the failure.
    """
    from cli.admin.kafka_library import KafkaError

    try:
        return action()
    except CommandError as error:
        complain(str(error))
        return error.status
    except KafkaError as error:
        complain(error_text(error))
        return FAILED


def complain(text: str) -> None:
    """Write one line for the user to standard error."""
    print(f"varve: {text}", file=sys.stderr)


def error_text(error: BaseException) -> str:
    """One line for an error of the client library.

    Of an error that the broker sent, the library's text shows whole requests; Kafka's name for the
    code and a sentence say more.
    """
    code = _error_code(type(error))
    if code is not None:
        return f"{code.message.rstrip('.')} ({code.name})"
    text = " ".join(str(argument) for argument in error.args if argument) or type(error).__name__
    if type(error).__name__ == "NodeNotReadyError":
        if text == "controller":
            return (
                "the brokers name no controller: one is elected while the metadata store lets them "
                "(`varve cluster describe`, their logs)"
            )
        # The address that was given answers, and names others.
        which = f"broker {text}" if text.isdecimal() else "no broker"
        can = "cannot" if text.isdecimal() else "can"
        return (
            f"{which} {can} be reached from here by the address that it advertises: see "
            "advertised.listeners in its settings"
        )
    if type(error).__name__ == "KafkaTimeoutError":
        text = f"the broker did not answer in time: {text}"
    return " ".join(text.split())


def _error_code(kind: type) -> ErrorCode | None:
    # The library's own errors, which no broker sent, have no number or -1.
    number = getattr(kind, "errno", None)
    if not isinstance(number, int) or number < 1:
        return None
    try:
        return ErrorCode(number)
    except ValueError:
        return None


def check_answer(subject: str, error_code: int, message: str | None = None) -> None:
    """Raise for an error code in an answer.

    Raises:
        CommandError: The code is not 0; the text is that of `answer_text`.
    """
    if error_code != 0:
        raise CommandError(answer_text(subject, error_code, message))


def answer_text(subject: str, error_code: int, message: str | None = None) -> str:
    """One line for an error code in an answer.

    Args:
        subject: What the answer is about, as `topic 'first'`.
        error_code: Of the answer, not 0.
        message: The broker's own sentence, when it sent one.
    """
    if error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        # The usual sentence for it says neither what is missing nor that it is.
        return f"{subject} does not exist"
    try:
        code = ErrorCode(error_code)
    except ValueError:
        return f"{subject}: error {error_code}"
    said = message or f"{subject}: {code.message}"
    return f"{said.rstrip('.')} ({code.name})"
