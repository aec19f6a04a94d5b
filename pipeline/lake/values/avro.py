"""Avro values to columns, in blocks where their schema allows it.

What the writer's schema gives is found in the table's columns by name; aliases and defaults are for
readers that have a schema of their own, and a table has only columns.
"""

import pyarrow as pa

from pipeline.lake.schemas.avro_schema import Node, avro_fields, parse_avro_schema
from pipeline.lake.schemas.registry import RegisteredSchema
from pipeline.lake.values.avro_blocks import AvroBlocks, has_blocks
from pipeline.lake.values.avro_records import BLOCK_BYTES, AvroRecords
from pipeline.lake.values.block_parsing import MAX_BLOCK_BYTES
from storage.environment.randomness import Randomness, SystemRandomness

KIND = "AVRO"
"""The registry's word."""


class AvroReader:
    """Reads values of one writer's schema."""

    def __init__(self, node: Node, column: str, randomness: Randomness | None = None) -> None:
        """Prepare.

        Args:
            node: The schema.
            column: Name of the one field of a schema that is no record.
            randomness: For marks between records.

        Raises:
            AvroSchemaError: It has no column.
        """
        self.written, self.bare = avro_fields(node, column)
        self._reader: AvroBlocks | AvroRecords
        if has_blocks(node):
            self._reader = AvroBlocks(node, randomness or SystemRandomness())
            self.block_bytes = MAX_BLOCK_BYTES
        else:
            self._reader = AvroRecords(node)
            self.block_bytes = BLOCK_BYTES

    def read(self, values: pa.BinaryArray) -> list[pa.Array]:
        """One array for each field.

        Raises:
            BrokenBlockError: At least one value is no record of the schema.
        """
        return self._reader.read(values)


def avro_of_registry(found: RegisteredSchema, column: str) -> AvroReader:
    """A reader of values of a registry's schema.

    Raises:
        ValueError: It is of another kind, or has no columns.
    """
    if found.kind != KIND:
        raise ValueError(f"{found.kind} and not {KIND}")
    return AvroReader(parse_avro_schema(found.text, found.references), column)
