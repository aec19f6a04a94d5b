"""Decoding of whole batches to Arrow rows: filters, positions of records, three kernels."""
