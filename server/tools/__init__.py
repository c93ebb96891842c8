"""The subcommands of ``headrace``: on files (check, export, import), on servers (others)."""

from typing import Final

NAMES: Final = ("check-aof", "check-snapshot", "console", "export", "import", "regions", "verify")
SUMMARY: Final = """\
       headrace check-aof [--fix] DIR|FILE
       headrace check-snapshot FILE
       headrace console [--url URL] [--port PORT]
       headrace export --to rdb|redis-aof|resp [--from DIR|FILE] OUT
       headrace import FROM --dir DIR
       headrace regions --url URL [--url URL ...] [--watch]
       headrace verify --against URL [--commands FILE | -- PROGRAM ...]
"""
# The oldest Redis that reads each version of RDB.
READERS: Final = {"5.0": 9, "7.0": 10, "7.2": 11, "7.4": 12, "8.6": 13, "8.8": 14, "8.10": 15}
VALKEY: Final = "valkey"  # the other reader of RDB, in versions of its own
