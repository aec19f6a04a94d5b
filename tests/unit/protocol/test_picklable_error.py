"""Errors that were pickled: as they were."""

import pickle

from protocol.picklable_error import PicklableError


class OddError(PicklableError, ValueError):
    """Its constructor takes what is not in the text alone."""

    def __init__(self, name: str, *, count: int) -> None:
        super().__init__(f"{name}: {count}")
        self.count = count


def test_an_error_keeps_its_class_text_and_attributes() -> None:
    error = OddError("lost", count=7)
    error.add_note("while it was read")
    same = pickle.loads(pickle.dumps(error))
    assert type(same) is OddError
    assert (str(same), same.count) == ("lost: 7", 7)
    assert same.__notes__ == ["while it was read"]
