"""From a request to the command that it names: rows, admission, execution, calls."""
