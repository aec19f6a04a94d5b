"""Bytes of segments on an executor: opened, fetched ahead, verified, as whole batches."""
