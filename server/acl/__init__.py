"""Users: who they are, what they may do, and what was refused."""
