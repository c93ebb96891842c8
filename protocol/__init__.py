"""The wire: bytes to requests, reply values to bytes. Only here do RESP2 and RESP3 differ."""
