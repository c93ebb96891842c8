"""Counters behind INFO that no other part keeps."""

from __future__ import annotations


class Stats:
    """Counted since start or since CONFIG RESETSTAT."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Start counting anew."""
        self.connections_received = 0
        self.rejected_connections = 0
        self.commands_processed = 0
        self.net_input_bytes = 0
        self.net_output_bytes = 0
        self.error_replies = 0
        self.errors_by_code: dict[bytes, int] = {}
        self.unexpected_errors = 0
        self.evicted_clients = 0
        self.output_buffer_disconnections = 0
        self.query_buffer_disconnections = 0

    def count_error(self, line: bytes) -> None:
        """Count an error reply by its code, the first word of its line."""
        self.error_replies += 1
        code = line.split(b" ", 1)[0]
        if code in self.errors_by_code or len(self.errors_by_code) < 128:
            self.errors_by_code[code] = self.errors_by_code.get(code, 0) + 1
