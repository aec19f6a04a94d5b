"""Validation common to AlterConfigs and IncrementalAlterConfigs, and their results.

Each resource is judged by itself, before the controller sees it; those that are refused here do not
keep the others from being changed.

Source: Kafka 4.2, ConfigAdminManager.scala (preprocess), RuntimeLoggerManager.java.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from broker.controller.configs.configs import Operation, check_broker_name
from broker.controller.images.cluster_image import ConfigResource, ResourceType
from broker.controller.images.results import Result
from broker.runtime.errors import ApiError
from protocol.error_codes import ErrorCode

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class RequestedChange:
    """One key of a resource in a request; a replacing request sets every key it names."""

    name: str
    value: str | None
    operation: int = int(Operation.SET)


@dataclass(frozen=True, slots=True)
class RequestedResource:
    """One resource of a request, as the client wrote it."""

    type: int
    name: str
    changes: Sequence[RequestedChange]


def resources_to_change(
    requested: Sequence[RequestedResource], *, nodes: Collection[int], incremental: bool
) -> list[ConfigResource | ApiError]:
    """For each resource what the controller is to change, or why it is refused.

    `nodes` are the ids of the registered brokers.

    A BROKER_LOGGER among them (incremental only) is complete: it asked for nothing.
    """
    times = Counter((resource.type, resource.name) for resource in requested)
    judged: list[ConfigResource | ApiError] = []
    for resource in requested:
        try:
            if times[resource.type, resource.name] > 1:
                raise _invalid("Each resource must appear at most once.")
            judged.append(_judge(resource, nodes, incremental))
        except ApiError as error:
            judged.append(error)
    return judged


def refused(
    judged: Sequence[ConfigResource | ApiError], refusals: Mapping[ConfigResource, ApiError]
) -> list[ConfigResource | ApiError]:
    """The verdicts with further `refusals`, in the order of the request."""
    return [
        refusals.get(verdict, verdict) if isinstance(verdict, ConfigResource) else verdict
        for verdict in judged
    ]


def left_to_forward(
    resources: Sequence[_T], judged: Sequence[ConfigResource | ApiError]
) -> list[_T]:
    """Of the parts of a request those that are not refused."""
    pairs = zip(resources, judged, strict=True)
    return [part for part, verdict in pairs if isinstance(verdict, ConfigResource)]


def with_answers(
    own: Sequence[_T], judged: Sequence[ConfigResource | ApiError], answered: Iterable[_T]
) -> list[_T]:
    """The parts of a response: `own` for what is refused, the others' in order for the rest."""
    others = iter(answered)
    return [
        part if isinstance(verdict, ApiError) else next(others)
        for part, verdict in zip(own, judged, strict=True)
    ]


Outcome = tuple[RequestedResource, ErrorCode, str | None]
"""A resource, and the error and message for it."""


def outcomes(
    requested: Sequence[RequestedResource],
    judged: Sequence[ConfigResource | ApiError],
    results: Mapping[ConfigResource, Result],
) -> list[Outcome]:
    """The outcome of each resource, in the order of the request.

    `results` are the controller's; a resource without one needed no change.
    """
    answers: list[Outcome] = []
    for resource, verdict in zip(requested, judged, strict=True):
        if isinstance(verdict, ApiError):
            answers.append((resource, verdict.code, verdict.message))
        else:
            result = results.get(verdict, Result())
            answers.append((resource, result.error, result.message))
    return answers


def _judge(
    resource: RequestedResource, nodes: Collection[int], incremental: bool
) -> ConfigResource:
    names = [change.name for change in resource.changes]
    if len(set(names)) < len(names):
        raise _invalid("Error due to duplicate config keys")
    missing = [
        change.name
        for change in resource.changes
        if change.value is None and change.operation != Operation.DELETE
    ]
    if missing:
        raise _invalid(f"Null value not supported for : {', '.join(missing)}")
    for change in resource.changes:
        if change.operation not in Operation.__members__.values():
            raise _invalid(f"Unknown operations type {change.operation}")
    try:
        kind = ResourceType(resource.type)
    except ValueError:
        raise _invalid(f"Unknown resource type {resource.type}") from None
    if kind is ResourceType.BROKER:
        check_broker_name(resource.name, nodes)
    elif kind is ResourceType.BROKER_LOGGER:
        if not incremental:
            raise _invalid(f"Unknown resource type {resource.type}")
        _check_loggers(resource, nodes)
    return ConfigResource(kind, resource.name)


def _check_loggers(resource: RequestedResource, nodes: Collection[int]) -> None:
    """Levels of single loggers cannot be set at run time: there are none by name here."""
    if not resource.name:
        raise _invalid("Node id must be an integer, but it is: ")
    check_broker_name(resource.name, nodes)
    for change in resource.changes:
        if change.operation in (Operation.APPEND, Operation.SUBTRACT):
            name = Operation(change.operation).name
            raise _invalid(f"{name} operation is not allowed for the BROKER_LOGGER resource")
        raise ApiError(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")


def _invalid(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REQUEST, message)
