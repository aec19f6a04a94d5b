"""A job's settings: `job.yaml`, checked whole."""
