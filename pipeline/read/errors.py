"""Errors of decoding."""

from protocol.picklable_error import PicklableError


class BrokenBatchError(PicklableError, ValueError):
    """A record batch that is not what its header says, or that this reader cannot hold.

    Rows of the batches before it were given, none of its own but where a batch is so large that it
    is decoded in windows: then those of the windows before the damage. A caller that may skip it
    continues at `next_position`.

    Attributes:
        position: Byte at which the batch begins, in the data that was given.
        problem: What is wrong, a sentence without its beginning.
        base_offset: What the batch says of its first offset, None where no header can be read.
        next_offset: What it says of the offset after its last, None likewise.
        next_position: Byte after the batch, None where its length is a lie, too: all that follows
            is lost with it.
    """

    def __init__(
        self,
        position: int,
        problem: str,
        *,
        base_offset: int | None = None,
        next_offset: int | None = None,
        next_position: int | None = None,
    ) -> None:
        where = "" if base_offset is None else f" (base offset {base_offset})"
        super().__init__(f"record batch at byte {position}{where}: {problem}")
        self.position = position
        self.problem = problem
        self.base_offset = base_offset
        self.next_offset = next_offset
        self.next_position = next_position


__all__ = ["BrokenBatchError"]
