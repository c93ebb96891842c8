"""Streams in regions: the functions of their effects, and what commands do there instead."""

import headrace.persistence.forms.stream.regional.form
import headrace.persistence.snapshot.region  # noqa: F401  (these register forms)
from headrace.server.commands.streams.regional import streams, whole  # noqa: F401
