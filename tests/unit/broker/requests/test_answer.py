"""Answers that may have to wait."""

from broker.requests.answer import Answer


def test_answer_that_is_there_is_the_response_itself() -> None:
    answer: Answer[str] = Answer()
    answer("now")
    answer("too late")
    assert answer.result() == "now"


def test_answer_that_comes_later_reaches_who_waits_once() -> None:
    answer: Answer[str] = Answer()
    heard: list[str] = []
    assert answer.result() is answer
    answer.wait_for(heard.append)
    assert heard == []
    answer("later")
    answer("too late")
    assert heard == ["later"]


def test_answer_that_came_between_is_heard_at_once() -> None:
    answer: Answer[str] = Answer()
    assert answer.result() is answer
    answer("meanwhile")
    heard: list[str] = []
    answer.wait_for(heard.append)
    answer("too late")
    assert heard == ["meanwhile"]


def test_answer_to_somebody_who_left_is_dropped() -> None:
    answer: Answer[str] = Answer()
    heard: list[str] = []
    answer.wait_for(heard.append)
    answer.abandon()
    answer("nobody listens")
    assert heard == []
