"""The commands, a folder for each family; a command is declared, then it is a function."""
