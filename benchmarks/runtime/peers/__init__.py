"""What else carries messages between processes: each in its own file, skipped if it is absent."""
