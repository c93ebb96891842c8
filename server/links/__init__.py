"""Connections that this server opens to others: to its master, and to other regions."""
