"""Record batches (magic 2): header, records, compression, control records. No IO."""
