"""The wing of regions: the one place from which it is imported, where it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import argparse

    from headrace.server.active_active import ActiveActive

    Tools = argparse._SubParsersAction[argparse.ArgumentParser]


def active_active() -> ActiveActive:
    """Return the features of regions; all of them are registered when this returns."""
    from headrace.regions.wing import Wing

    return Wing()


def add_regions_tool(tools: Tools) -> None:
    """Add ``headrace regions`` to the tools."""
    from headrace.regions.tools.cli import add_tool

    add_tool(tools)


def run_regions_tool(arguments: argparse.Namespace) -> int:
    """Run ``headrace regions``; return the exit code."""
    from headrace.regions.tools.cli import run_tool

    return run_tool(arguments)
