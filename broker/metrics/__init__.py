"""Prometheus metrics, read from the objects that do the work at the moment of the scrape."""
