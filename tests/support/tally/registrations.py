"""All that the rest of a server is told of tallies: a line for each table."""

from pathlib import Path

from headrace.persistence.forms.table import register
from headrace.server.dispatch.rows import read_tables
from support.tally.form import TallyForm

register(TallyForm())
read_tables(str(Path(__file__).parent), "support.tally.")
