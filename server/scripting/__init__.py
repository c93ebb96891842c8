"""Lua: scripts and functions, their environment, and their calls of commands."""
