"""Spark finds data sources in modules named `pyspark_*` by itself: this one is `varve`."""
