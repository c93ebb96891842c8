"""Lua: scripts and functions, what they see, and how they call commands."""
