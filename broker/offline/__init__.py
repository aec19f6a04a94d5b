"""Work on the metadata of brokers that do not run: copied between stores, rebuilt from logs."""
