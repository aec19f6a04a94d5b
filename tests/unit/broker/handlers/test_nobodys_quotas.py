"""DescribeClientQuotas, DescribeUserScramCredentials: there are none."""

import pytest

from broker.handlers import describe_client_quotas, describe_user_scram_credentials
from protocol.error_codes import ErrorCode
from protocol.messages.describe_client_quotas import ComponentData, DescribeClientQuotasRequest
from protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from tests.fakes.broker.controller import open_controller, services_of
from tests.fakes.broker.wire import call

GOOD = [("user", 0, "alice"), ("client-id", 1, None)]


@pytest.mark.parametrize("version", [0, 1])
@pytest.mark.parametrize("components", [[], GOOD, [("ip", 2, None)]])
async def test_no_entity_has_a_quota(
    version: int, components: list[tuple[str, int, str | None]]
) -> None:
    services = services_of(await open_controller())
    answer = await call(describe_client_quotas, services, _filter(components), version)
    assert (answer.error_code, answer.entries) == (ErrorCode.NONE, [])


@pytest.mark.parametrize(
    ("components", "said"),
    [
        ([("", 2, None)], "Invalid empty entity type."),
        ([("user", 2, None)] * 2, "Entity type user cannot appear more than once in the filter."),
        ([("user", 0, None)], "Request specified MATCH_TYPE_EXACT, but set match string to null."),
        (
            [("user", 1, "a")],
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            [("user", 2, "a")],
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
        ([("user", 3, None)], "Unknown match type 3"),
        (
            [*GOOD, ("ip", 2, None)],
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component.",
        ),
    ],
)
async def test_a_filter_that_cannot_be_is_refused(
    components: list[tuple[str, int, str | None]], said: str
) -> None:
    services = services_of(await open_controller())
    answer = await call(describe_client_quotas, services, _filter(components), 1)
    assert (answer.error_code, answer.error_message) == (ErrorCode.INVALID_REQUEST, said)
    assert answer.entries is None


async def test_an_unknown_kind_of_entity_is_of_a_later_version() -> None:
    services = services_of(await open_controller())
    answer = await call(describe_client_quotas, services, _filter([("group", 2, None)]), 1)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION


async def test_no_user_has_credentials() -> None:
    services = services_of(await open_controller())

    async def ask(*names: str) -> list[tuple[str, int]]:
        users = [UserName(name=name) for name in names]
        request = DescribeUserScramCredentialsRequest(users=users or None)
        answer = await call(describe_user_scram_credentials, services, request, 0)
        assert answer.error_code == ErrorCode.NONE
        return [(result.user, result.error_code) for result in answer.results]

    assert await ask() == []
    assert await ask("a", "b", "b") == [
        ("a", ErrorCode.RESOURCE_NOT_FOUND),
        ("b", ErrorCode.DUPLICATE_RESOURCE),
    ]


def _filter(components: list[tuple[str, int, str | None]]) -> DescribeClientQuotasRequest:
    return DescribeClientQuotasRequest(
        components=[
            ComponentData(entity_type=kind, match_type=match_type, match=match)
            for kind, match_type, match in components
        ]
    )
