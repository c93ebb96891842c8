"""The forms that a value takes outside the keyspace, one module per type."""
