"""What the server knows of its clients: sessions, subscriptions, monitors."""
