"""From stored bytes to Arrow rows: chunks and Fetch answers, batch headers, records."""
