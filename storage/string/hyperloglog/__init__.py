"""HyperLogLogs: strings that estimate how many different elements they have been given."""
