"""What only the active controller does: elections, ISR changes, brokers let in and fenced."""
