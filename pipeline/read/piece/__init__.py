"""Rows of a piece: from the bucket, or from the broker where the bucket lacks them."""
