"""Active-active: all of a server that is one of several regions which share a database.

It is imported where ``aa-region-id`` is set, by ``server.wing`` alone.
"""
