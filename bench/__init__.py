"""Benchmarks of Headrace beside its peers: ``python -m bench.suite --help``."""
