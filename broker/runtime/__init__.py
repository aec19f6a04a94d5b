"""Ground of the broker: timer, threads for disks, calls back to the event loop, errors."""
