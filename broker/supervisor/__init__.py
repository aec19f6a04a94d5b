"""Several brokers of one machine: started, started again, stopped, and shown as one."""
