"""All that the rest of a server is told of tallies: a line for each table."""

import support.tally.commands  # noqa: F401  (the command table)
from headrace.persistence.forms.table import register
from headrace.server.commands.documentation import documented_in
from support.tally.form import TallyForm

register(TallyForm())
documented_in("support.tally.docs")
