"""Side-by-side measurements against released Apache Kafka: `python -m bench`."""
