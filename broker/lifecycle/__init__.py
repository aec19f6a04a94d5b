"""Life cycle of a broker: node, loading of logs, coordinators, disk failures."""
