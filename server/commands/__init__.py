"""The commands, a module or a folder for each family: one is declared, then it is a function."""
