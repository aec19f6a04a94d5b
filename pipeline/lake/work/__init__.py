"""Tasks of a job, and who runs them: Spark, or processes of this machine."""
