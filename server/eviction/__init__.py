"""Making room where ``maxmemory`` is reached: which keys go, and how that is done."""
