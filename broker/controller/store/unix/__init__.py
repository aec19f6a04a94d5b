"""The metadata store of one machine's brokers: one process serves its file over a Unix socket."""
