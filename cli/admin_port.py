"""Asks a broker's admin port; an answer is JSON."""

import argparse
import http.client
import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from cli.connection import CommandError, host_and_port

DEFAULT_ADDRESS: Final = "127.0.0.1:9644"
TIMEOUT_S: Final = 15.0

ACTION_TIMEOUT_S: Final = 3_600.0
"""For what a POST has done; the broker's own limit is the same."""

AskAdmin = Callable[[str, str, str, Mapping[str, str]], Any]
"""(address, method, path, query) to the answer's document, as `ask_admin`."""


def add_admin_argument(parser: argparse.ArgumentParser) -> None:
    """Declare `--admin`."""
    parser.add_argument(
        "--admin",
        metavar="HOST:PORT",
        type=_address,
        default=DEFAULT_ADDRESS,
        help=f"the broker's admin port (default {DEFAULT_ADDRESS})",
    )


def _address(text: str) -> str:
    if host_and_port(text) is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not host:port")
    return text


def ask_admin(address: str, method: str, path: str, query: Mapping[str, str]) -> Any:
    """The document that `method path?query` answers.

    Raises:
        CommandError: No broker answers, or it refuses; the text has the reason.
    """
    status, body = _request(address, method, f"{path}?{urlencode(query)}")
    document = _document(body)
    if status == 404:
        raise CommandError(_why_not_there(address))
    if status != 200:
        said = document.get("error") if isinstance(document, dict) else None
        text = said or body.decode(errors="replace").strip()
        raise CommandError(f"the broker at {address} refuses: {text}")
    return document


def _request(address: str, method: str, path: str) -> tuple[int, bytes]:
    """Status and body.

    Raises:
        CommandError: No broker answers.
    """
    target = host_and_port(address)
    assert target is not None, "the option's type has checked it"
    timeout_s = ACTION_TIMEOUT_S if method == "POST" else TIMEOUT_S
    connection = http.client.HTTPConnection(*target, timeout=timeout_s)
    is_connected = False
    try:
        connection.connect()
        is_connected = True
        # The header says that no web page has made a browser send this.
        connection.request(method, path, headers={"Varve-Action": "1"})
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException) as error:
        if is_connected and isinstance(error, TimeoutError):
            raise CommandError(
                f"the broker at {address} has not answered within {timeout_s:.0f} s"
            ) from error
        if is_connected and isinstance(error, ConnectionError | http.client.IncompleteRead):
            raise CommandError(
                f"{address} has ended the connection before its answer: the broker has ended, or "
                "this is not its admin port (admin.listener, --admin names another)"
            ) from error
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise CommandError(
            f"no admin port at {address}: {reason or type(error).__name__} "
            "(admin.listener of the broker, --admin names another)"
        ) from error
    finally:
        connection.close()


def _document(body: bytes) -> Any:
    """Of JSON; None: it is none."""
    try:
        return json.loads(body)
    except ValueError:
        return None


def _why_not_there(address: str) -> str:
    """Why an admin port has no pages of remote storage: a supervisor has only its brokers'."""
    status, body = _request(address, "GET", "/brokers")
    brokers = _document(body) if status == 200 else None
    if not isinstance(brokers, list):
        return f"the broker at {address} has no remote storage"
    ports = [f"{one['admin']} (broker {one['broker']})" for one in brokers if one["admin"]]
    return (
        f"{address} is the admin port of several brokers together (`varve serve --brokers`): "
        f"--admin takes one's own, now {', '.join(ports) or 'none, as none serves'}"
    )
