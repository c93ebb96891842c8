"""The documentation of every command, by its lower-case name (``container|subcommand``)."""

from __future__ import annotations

from typing import Final

from compat import (
    docs_cluster,
    docs_connection,
    docs_dialect,
    docs_groups,
    docs_keys,
    docs_pubsub,
    docs_server,
    docs_streams,
    docs_strings,
)
from compat.doc_notation import Doc

DOCS: Final[dict[str, Doc]] = {
    **docs_cluster.DOCS,
    **docs_connection.DOCS,
    **docs_dialect.DOCS,
    **docs_groups.DOCS,
    **docs_keys.DOCS,
    **docs_pubsub.DOCS,
    **docs_server.DOCS,
    **docs_streams.DOCS,
    **docs_strings.DOCS,
}
