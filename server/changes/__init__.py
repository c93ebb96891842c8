"""The one door for changes, and who listens behind it, such as WATCH and keyspace notifications."""
