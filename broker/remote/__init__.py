"""Remote storage, as the broker uses it."""
