"""The subcommands of ``headrace``: on files (check, export, import), and on servers (regions)."""

from typing import Final

NAMES: Final = ("check-aof", "check-snapshot", "export", "import", "regions")
SUMMARY: Final = """\
       headrace check-aof [--fix] DIR|FILE
       headrace check-snapshot FILE
       headrace export --to resp|redis-aof [--from DIR|FILE] OUT
       headrace import FROM --dir DIR
       headrace regions --url URL [--url URL ...] [--watch]
"""
