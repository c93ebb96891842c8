"""What several regions agree on: who wrote what, who knows what, and in which order it was."""
