"""What a batch is about: views of the log, offsets of the table, stored plans."""
