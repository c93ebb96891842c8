"""Sets: members without an order, each of them once."""
