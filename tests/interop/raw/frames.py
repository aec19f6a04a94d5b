"""Scripts about frames: what became of requests before one that ends the connection."""

from struct import pack

from protocol.api_keys import ApiKey
from protocol.messages.heartbeat import HeartbeatRequest, encode_request
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
