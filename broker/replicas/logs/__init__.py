"""The logs of the replicas that are assigned here: opened, made, reconfigured and removed."""
