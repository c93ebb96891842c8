"""The subcommands of ``headrace`` that work on files: check, export, import."""

from typing import Final

NAMES: Final = ("check-aof", "check-snapshot", "export", "import")
SUMMARY: Final = """\
       headrace check-aof [--fix] DIR|FILE
       headrace check-snapshot FILE
       headrace export --to resp|redis-aof [--from DIR|FILE] OUT
       headrace import FROM --dir DIR
"""
