"""SaslHandshake and SaslAuthenticate: no listener has SASL."""

import pytest

from broker.handlers import sasl_authenticate, sasl_handshake
from protocol.error_codes import ErrorCode
from protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call


@pytest.mark.parametrize("version", [0, 1])
async def test_a_handshake_is_told_that_there_is_no_sasl(version: int) -> None:
    """A client set to SASL ends with that, instead of connecting again for ever."""
    services = services_of(await open_controller())

    answer = await call(sasl_handshake, services, SaslHandshakeRequest(mechanism="PLAIN"), version)

    assert (answer.error_code, answer.mechanisms) == (ErrorCode.ILLEGAL_SASL_STATE, [])


@pytest.mark.parametrize("version", [0, 1, 2])
async def test_authentication_is_told_so_too(version: int) -> None:
    """With Kafka's sentence."""
    services = services_of(await open_controller())

    answer = await call(
        sasl_authenticate, services, SaslAuthenticateRequest(auth_bytes=b"\0a\0b"), version
    )

    assert answer.error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert answer.error_message == sasl_authenticate.REASON
    assert (answer.auth_bytes, answer.session_lifetime_ms) == (b"", 0)
