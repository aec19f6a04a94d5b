"""Deleting many: at once, one by one, and what stores answer."""

from typing import Any, cast

import pytest

from config.object_store import StoreSettings
from storage.environment.randomness import SeededRandomness
from tests.fakes.clock import ManualClock
from tiered.errors import (
    ObjectNotFoundError,
    RemoteStorageError,
    StoreDeniedError,
    StoreUnavailableError,
)
from tiered.object_store.s3.calls import S3Calls
from tiered.object_store.s3.delete import S3Deleter
from tiered.object_store.s3.errors import NotImplementedByStoreError
from tiered.object_store.statistics import StoreStatistics


class Answers(S3Calls):
    """S3 in short: what each operation answers."""

    def __init__(self) -> None:
        self.statistics = StoreStatistics(ManualClock())

        async def no_sleep(_: float) -> None:
            return

        super().__init__(
            StoreSettings(backend="s3", bucket="b", attempts=3),
            ManualClock(),
            SeededRandomness(1),
            self.statistics,
            None,
            no_sleep,
            fast_reads=False,
        )
        self.asked: list[tuple[str, Any]] = []
        self.many: list[Any] = []
        self.single: dict[str, Exception] = {}

    async def once(self, operation: str, key: str, arguments: dict[str, Any]) -> Any:
        self.asked.append(
            (operation, key or [found["Key"] for found in arguments["Delete"]["Objects"]])
        )
        if operation == "delete_objects":
            answer = self.many.pop(0) if self.many else {}
            if isinstance(answer, Exception):
                raise answer
            return answer
        if key in self.single:
            raise self.single[key]
        return {}


async def delete(answers: Answers, *keys: str, deleter: S3Deleter | None = None) -> None:
    deleter = deleter or S3Deleter(answers, "p/")
    await deleter.delete(keys, answers.statistics.by_call["delete"])


async def test_many_go_in_one_request_and_one_in_its_own() -> None:
    answers = Answers()
    await delete(answers, "a", "b")
    await delete(answers, "c")
    assert answers.asked == [("delete_objects", ["p/a", "p/b"]), ("delete_object", "c")]


async def test_errors_of_single_keys_are_those_of_the_call() -> None:
    answers = Answers()
    answers.many = [{"Errors": [{"Key": "p/a", "Code": "NoSuchKey"}]}]
    await delete(answers, "a", "b")
    answers.many = [{"Errors": [{"Key": "p/a", "Code": "AccessDenied", "Message": "no"}]}]
    with pytest.raises(StoreDeniedError, match="p/a"):
        await delete(answers, "a", "b")


async def test_an_internal_error_of_a_key_is_tried_again() -> None:
    answers = Answers()
    broken = {"Errors": [{"Key": "p/a", "Code": "InternalError"}]}
    answers.many = [broken, {}]
    await delete(answers, "a", "b")
    assert answers.statistics.by_call["delete"].retries == 1
    answers.many = [broken] * 3
    with pytest.raises(StoreUnavailableError):
        await delete(answers, "a", "b")


@pytest.mark.parametrize(
    "error",
    [NotImplementedByStoreError("501"), RemoteStorageError("400 MissingContentMD5")],
)
async def test_a_store_without_the_call_is_asked_once(error: Exception) -> None:
    answers = Answers()
    answers.many = [error]
    answers.single = {"b": ObjectNotFoundError("b")}
    deleter = S3Deleter(answers, "")
    keys = [chr(ord("a") + number) for number in range(20)]
    await delete(answers, *keys, deleter=deleter)
    await delete(answers, "x", "y", deleter=deleter)
    assert deleter.singly
    operations = [operation for operation, _ in answers.asked]
    assert operations.count("delete_objects") == 1
    assert sorted(cast("str", key) for _, key in answers.asked[1:]) == sorted([*keys, "x", "y"])


async def test_a_failure_one_by_one_is_told_as_itself_and_remembered_as_nothing() -> None:
    answers = Answers()
    answers.many = [RemoteStorageError("404 NoSuchBucket")]
    answers.single = {"b": RemoteStorageError("404 NoSuchBucket")}
    deleter = S3Deleter(answers, "")
    with pytest.raises(RemoteStorageError, match="NoSuchBucket"):
        await delete(answers, "a", "b", "c", deleter=deleter)
    assert not deleter.singly


@pytest.mark.parametrize("error", [StoreUnavailableError("503"), StoreDeniedError("403")])
async def test_trouble_is_not_taken_for_a_missing_call(error: Exception) -> None:
    answers = Answers()
    answers.many = [error] * 3
    with pytest.raises(type(error)):
        await delete(answers, "a", "b")
    assert {operation for operation, _ in answers.asked} == {"delete_objects"}
