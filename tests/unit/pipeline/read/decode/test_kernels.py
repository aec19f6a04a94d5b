"""Which kernel reads."""

import pytest

from pipeline.read.decode.kernels import kernel_name, load_kernel
from tests.unit.pipeline.read.batches import KERNEL_NAMES


@pytest.mark.parametrize("name", KERNEL_NAMES)
def test_by_name(name: str) -> None:
    """Each says which it is."""
    assert load_kernel(name).name == name


def test_the_fastest_is_chosen() -> None:
    """Unless somebody names another."""
    assert kernel_name() == KERNEL_NAMES[0]
    assert load_kernel().name == KERNEL_NAMES[0]


def test_there_is_no_other() -> None:
    """The error says which there are."""
    with pytest.raises(ValueError, match="no kernel fast; there are"):
        load_kernel("fast")
