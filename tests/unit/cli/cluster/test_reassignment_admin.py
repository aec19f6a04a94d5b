"""The requests that the client library lacks, as they go to the controller."""

import asyncio
from collections.abc import Callable, Coroutine
from types import SimpleNamespace
from typing import Any

from cli.cluster.reassignment_admin import ReassignmentAdminClient


class Manager:
    """Runs what the client would run in its thread."""

    def run(self, call: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        return asyncio.run(call())


class Asked(ReassignmentAdminClient):
    """The client without a connection: it answers what the test says."""

    def __init__(self, *answers: object) -> None:
        self._manager = Manager()
        self.answers = list(answers)
        self.requests: list[Any] = []

    async def _send_request_to_controller(self, request: Any, *_: Any, **__: Any) -> Any:
        self.requests.append(request)
        return self.answers.pop(0)


def answer(*partitions: tuple[int, int, str | None], error: int = 0) -> object:
    return SimpleNamespace(
        error_code=error,
        error_message="not the controller",
        responses=[
            SimpleNamespace(
                name="t",
                partitions=[
                    SimpleNamespace(partition_index=index, error_code=code, error_message=why)
                    for index, code, why in partitions
                ],
            )
        ],
    )


def test_moves_are_asked_for_and_refusals_come_with_their_reasons() -> None:
    client = Asked(answer((0, 0, None), (1, 39, "no such broker")))
    refused = client.reassign({("t", 0): (1, 2), ("t", 1): None})
    assert refused == {("t", 1): (39, "no such broker")}
    (topic,) = client.requests[0].topics
    assert [(one.partition_index, one.replicas) for one in topic.partitions] == [
        (0, [1, 2]),
        (1, None),
    ]


def test_a_refusal_of_the_whole_request_is_one_of_each_partition() -> None:
    client = Asked(answer(error=41))
    assert client.reassign({("t", 0): (1,)}) == {("t", 0): (41, "not the controller")}


def test_a_broker_is_unregistered_by_its_id() -> None:
    client = Asked(SimpleNamespace(error_code=102, error_message="unknown"))
    assert client.unregister_broker(7) == (102, "unknown")
    assert client.requests[0].broker_id == 7
