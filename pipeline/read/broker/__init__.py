"""A small Kafka client of the pipeline's: metadata, offsets, raw batches, rows of them."""
