"""The server's state of its clients: sessions, subscriptions, monitors."""
