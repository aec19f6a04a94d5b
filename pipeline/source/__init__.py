"""The data source `varve`: options, offsets, batch and stream readers as Spark wants them."""
