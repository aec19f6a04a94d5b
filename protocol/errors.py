"""What the protocol package raises."""

from protocol.picklable_error import PicklableError


class DecodeError(PicklableError, ValueError):
    """Bytes that are not what they claim to be.

    The only exception a decoder raises, whatever is wrong: too few bytes, a count or length that
    cannot be true, an unknown API or version. The frame is lost; since
    nothing after it can be trusted either, the broker closes the connection, as Kafka does.
    """


class DecompressedSizeError(DecodeError):
    """Records that decompress to more than is allowed; what there is of them is well."""
