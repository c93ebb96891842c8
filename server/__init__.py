"""The running server, in rooms; docs/architecture.md has the plan of the house."""
