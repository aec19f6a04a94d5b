"""Scripts about frames: what became of requests before one that ends the connection."""

from struct import pack

from protocol.api_keys import ApiKey
from protocol.headers import encode_request_header
from protocol.messages.heartbeat import HeartbeatRequest, encode_request
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.interop.raw.dialogue import Dialogue
from tests.interop.raw.script import script

KEY = int(ApiKey.HEARTBEAT)


def heartbeat(client_id: bytes = b"frames", *, key: int = KEY) -> bytes:
    """A whole frame, of a member that no group has."""
    request = HeartbeatRequest(group_id="nobody's", generation_id=1, member_id="nobody")
    head = pack(">hhih", key, 0, 1, len(client_id)) + client_id
    data = head + encode_request(request, 0)
    return pack(">i", len(data)) + data


def say(d: Dialogue, what: str, *frames: bytes) -> None:
    """Send all in one piece; note every answer, and whether the connection was closed."""
    connection = d.another_connection()
    connection.sendall(b"".join(frames))
    for number, _ in enumerate(frames):
        answer = d.receive(ApiKey.HEARTBEAT, 0, connection)
        d.note(f"{what} {number}", answer)
        if answer is None:
            return


@script
def requests_before_one_that_ends_the_connection(d: Dialogue) -> None:
    """They are answered, whatever is wrong with the one behind them."""
    good = heartbeat()
    say(d, "all well", good, good, good)
    say(d, "no such API", good, good, heartbeat(key=99), good)
    say(d, "cut off within", good, pack(">i", 12) + good[4:16], good)
    say(d, "negative size", good, good, pack(">i", -1))
    say(d, "impossible size", good, pack(">i", 2**31 - 1))


@script
def client_ids_of_any_bytes(d: Dialogue) -> None:
    """Those that are not UTF-8 are taken, too; the same and another one on one connection."""
    say(d, "Latin-1", heartbeat(b"M\xfcller"), heartbeat(b"M\xfcller"), heartbeat())
    say(d, "empty", heartbeat(b""), heartbeat(b"\xff"))


@script
def strings_of_any_bytes(d: Dialogue) -> None:
    """Names that are not UTF-8 are answered, in the fixed and the compact form."""
    bad = b"g\xff\xe9x"
    fixed, compact = pack(">h", len(bad)) + bad, bytes((len(bad) + 1,)) + bad
    for key, version, body in (
        (ApiKey.METADATA, 1, pack(">i", 1) + fixed),
        (ApiKey.LIST_OFFSETS, 1, pack(">ii", -1, 1) + fixed + pack(">iiq", 1, 0, -1)),
        (
            ApiKey.LIST_OFFSETS,
            6,
            pack(">ibb", -1, 0, 2) + compact + pack(">biiqbbb", 2, 0, -1, -1, 0, 0, 0),
        ),
    ):
        connection = d.another_connection()
        head = encode_request_header(key, version, 0, "frames")
        connection.sendall(pack(">i", len(head + body)) + head + body)
        d.note(f"{key.name} v{version}", d.receive(key, version, connection))


@script
def sasl_where_there_is_none(d: Dialogue) -> None:
    """A client that is set to it is told so, and the connection stays."""
    for version in (0, 1):
        d.ask(f"handshake v{version}", SaslHandshakeRequest(mechanism="PLAIN"), version)
    for version in (0, 1, 2):
        d.ask(f"authenticate v{version}", SaslAuthenticateRequest(auth_bytes=b"\0u\0p"), version)
