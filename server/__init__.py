"""The asyncio shell: connections, sessions, the command table, blocking, transactions, pub/sub."""
