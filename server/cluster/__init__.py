"""The cluster of one node that this server is, where ``cluster-enabled`` asks for that."""
