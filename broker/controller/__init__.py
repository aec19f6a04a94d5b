"""The cluster's state: topics, partitions, settings, producer ids; who changes it, who hears."""
