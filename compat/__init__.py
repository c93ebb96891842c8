"""What we owe to Redis: error texts, kinds of parameters, patterns, numbers, documentation."""
