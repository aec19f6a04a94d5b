"""Reading of stored bytes as Arrow rows: chunks and Fetch answers, batch headers, records."""
