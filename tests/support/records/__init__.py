"""The records of changes that a server sends its replicas, and cases that leave some."""
