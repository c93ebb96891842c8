"""Lua: scripts and functions, their world, and their calls of commands."""
