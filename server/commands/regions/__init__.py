"""AA: what regions ask each other, and what operators ask a region."""
