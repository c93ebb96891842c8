"""A type that only tests have, with all that a type consists of.

A tally is a row of marks, each a number: ``TALLY.ADD key mark`` makes one and ``TALLY.GET key``
adds them up. Where they add up to nothing, the key goes.
"""
