"""From whole batches to Arrow rows: what is out, where records lie, in three kernels."""
