"""Reading of a piece on an executor, with the options of its query."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pipeline.plan.piece import Piece
from pipeline.read.broker.options import BrokerOptions
from pipeline.read.piece.piece_rows import ReadOptions, read_piece
from pipeline.source.options.options import SourceOptions
from pipeline.source.settled import settle

if TYPE_CHECKING:
    import pyarrow as pa


def read_options(options: SourceOptions) -> ReadOptions:
    """Options of reading pieces."""
    return ReadOptions(
        bucket=options.bucket,
        broker=broker_options(options),
        columns=tuple(options.columns),
        read_committed=options.read_committed,
        fail_on_data_loss=options.fail_on_data_loss,
    )


def broker_options(options: SourceOptions) -> BrokerOptions | None:
    """Options of the broker client; None: there is no broker."""
    servers = ",".join(options.bootstrap_servers)
    return BrokerOptions(servers) if servers else None


def rows_of(piece: Piece | None, options: SourceOptions) -> "Iterator[pa.RecordBatch]":
    """Rows in the order of their offsets; none of no piece."""
    if piece is not None:
        yield from read_piece(piece, read_options(options))
        settle()
