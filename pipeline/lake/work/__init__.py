"""Tasks of a job, and their runners: Spark, or processes of this machine."""
