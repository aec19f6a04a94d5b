"""The program around a job: composition, service loop, retries, metrics, maintenance."""
