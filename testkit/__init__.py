"""What kits for tests ask of a server: a moved clock, faults, a clean start."""
