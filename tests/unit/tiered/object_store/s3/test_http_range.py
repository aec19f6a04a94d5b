"""Which bytes of an answer are those that were asked for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tiered.errors import StoreUnavailableError
from tiered.object_store.deadline import NotRetriedError
from tiered.object_store.s3.http_range import BodyWindow, body_window


@pytest.mark.parametrize(
    ("status", "content_range", "content_length", "window"),
    [
        (206, "bytes 5-9/100", 5, BodyWindow(0, 5)),
        (206, "bytes 5-9/*", 5, BodyWindow(0, 5)),
        (206, "bytes 5-9/100", -1, BodyWindow(0, 5)),
        (206, "", 5, BodyWindow(0, 5)),
        (200, "bytes 5-9/100", 5, BodyWindow(0, 5)),
        (200, "", 100, BodyWindow(5, 100)),
        (200, "", 10, BodyWindow(5, 10)),
        (200, "", -1, BodyWindow(5, -1)),
    ],
)
def test_answers_that_hold_the_range(
    status: int, content_range: str, content_length: int, window: BodyWindow
) -> None:
    assert body_window(status, content_range, content_length, 5, 5) == window


@pytest.mark.parametrize(
    ("status", "content_range", "content_length"),
    [
        (206, "bytes 5-7/8", 3),
        (206, "", 3),
        (206, "", -1),
        (200, "bytes 5-7/8", 3),
        (200, "", 9),
        (200, "", 5),
        (200, "", 0),
    ],
)
def test_objects_that_end_too_early(status: int, content_range: str, content_length: int) -> None:
    with pytest.raises(NotRetriedError):
        body_window(status, content_range, content_length, 5, 5)


@pytest.mark.parametrize(
    ("content_range", "content_length"),
    [
        ("bytes 4-8/100", 5),
        ("bytes 5-10/100", 6),
        ("bytes 5-9/100", 4),
        ("bytes */100", 5),
        ("bytes 5-/100", 5),
        ("items 5-9/100", 5),
        ("x", 5),
        ("", 6),
    ],
)
def test_answers_that_do_not_fit_the_question(content_range: str, content_length: int) -> None:
    with pytest.raises(StoreUnavailableError) as caught:
        body_window(206, content_range, content_length, 5, 5)
    assert not isinstance(caught.value, NotRetriedError)


@given(
    data=st.binary(max_size=40),
    position=st.integers(0, 50),
    length=st.integers(1, 50),
    form=st.sampled_from(["206", "bare 206", "ranged 200", "200"]),
)
def test_the_window_holds_the_wanted_bytes_or_there_is_an_error(
    data: bytes, position: int, length: int, form: str
) -> None:
    """Of any server that is honest about what it sends."""
    wanted = data[position : position + length]
    body = data if form == "200" else wanted
    end = position + len(wanted) - 1
    content_range = "" if form in ("200", "bare 206") else f"bytes {position}-{end}/{len(data)}"
    status = 206 if "206" in form else 200
    try:
        window = body_window(status, content_range, len(body), position, length)
    except StoreUnavailableError:
        assert len(wanted) < length
        return
    assert body[window.skip : window.skip + length] == wanted
    assert len(wanted) == length
