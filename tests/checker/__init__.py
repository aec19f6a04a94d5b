"""A history checker after Jepsen's Kafka workload: clients, faults, the search for anomalies."""
