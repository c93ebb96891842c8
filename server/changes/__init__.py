"""The one door for changes, and who listens behind it: WATCH and keyspace notifications."""
