"""A Redis-compatible stream server. Its parts are the folders beside this one.

In the wheel they lie below this package: ``headrace.protocol``, ``headrace.storage``,
``headrace.persistence``, ``headrace.compat`` and ``headrace.server``.
"""

from typing import Final

__version__: Final = "0.2.0"
