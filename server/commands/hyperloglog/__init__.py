"""HyperLogLogs: how many different elements there were."""
