"""The subcommands of ``headrace`` that look at regions."""
