"""One module per family of commands; a command is declared, then it is a function."""
