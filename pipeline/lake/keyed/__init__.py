"""Tables that keep the last record of each key: sorted files per bucket, merged as streams."""
