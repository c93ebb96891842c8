"""Which clients keep copies of what they have read, and how they are told that it has changed."""
