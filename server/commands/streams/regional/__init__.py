"""Streams in regions: the functions of their effects, and what commands do there instead."""

from headrace.server.commands.streams.regional import whole  # noqa: F401
