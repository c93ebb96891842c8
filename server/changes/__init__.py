"""The one place for changes, and its listeners, such as WATCH and keyspace notifications."""
