"""Connections: sockets to requests, replies to sockets."""
