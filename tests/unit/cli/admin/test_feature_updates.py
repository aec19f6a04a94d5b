"""The request that changes levels of features, and what becomes of the broker's reasons."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from cli.admin.feature_updates import FeatureAdminClient, Refusal, open_feature_admin
from cli.connection import CommandError

DONE = SimpleNamespace(feature="group.version", error_code=0, error_message=None)
REFUSED = SimpleNamespace(feature="share.version", error_code=95, error_message="Why not.")


def feature_client(
    error_code: int, message: str | None, *results: Any
) -> tuple[FeatureAdminClient, list[Any]]:
    admin = FeatureAdminClient.__new__(FeatureAdminClient)
    sent: list[Any] = []

    async def send(request: Any, get_errors_fn: Any, raise_errors: bool) -> Any:
        sent.append(request)
        assert not raise_errors
        answer = SimpleNamespace(
            error_code=error_code, error_message=message, results=list(results)
        )
        assert [error.errno for error in get_errors_fn(answer)] == [error_code]
        return answer

    manager = SimpleNamespace(run=lambda coroutine: asyncio.run(coroutine()))
    for name, part in (("_manager", manager), ("_send_request_to_controller", send)):
        setattr(admin, name, part)
    return admin, sent


def test_what_is_sent() -> None:
    admin, sent = feature_client(0, None, DONE)
    levels = {"group.version": (1, 1), "share.version": (3, 0)}
    assert admin.update_feature_levels(levels, validate_only=False) == []
    (request,) = sent
    found = {
        one.feature: (one.upgrade_type, one.max_version_level) for one in request.feature_updates
    }
    assert found == levels
    assert not request.validate_only


def test_the_reason_for_all_or_one() -> None:
    admin, _ = feature_client(95, "Why not.")
    levels = {"share.version": (1, 9)}
    assert admin.update_feature_levels(levels, validate_only=True) == [
        Refusal(None, 95, "Why not.")
    ]
    admin, _ = feature_client(0, None, DONE, REFUSED)
    assert admin.update_feature_levels(levels, validate_only=True) == [
        Refusal("share.version", 95, "Why not.")
    ]


def test_nobody_listens() -> None:
    """Said before the library looks for minutes."""
    with pytest.raises(CommandError, match="no broker at"):
        open_feature_admin(bootstrap_servers="127.0.0.1:1")
