"""Opening a log: what is on the disk is checked, cut and put together."""
