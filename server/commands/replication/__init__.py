"""PSYNC, REPLCONF, ROLE: what servers with the same data ask each other."""
