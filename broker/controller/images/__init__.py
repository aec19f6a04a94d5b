"""The cluster as records of the metadata store say it: topics, features, results."""
