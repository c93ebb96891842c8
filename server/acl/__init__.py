"""Users, their rights, and what was refused."""
