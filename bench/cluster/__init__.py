"""Brokers that are one cluster, as processes: started, killed, stopped, paused, asked."""
