"""The subcommands of ``headrace`` that work on files: check, export, import."""
