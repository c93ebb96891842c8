import sys

from simulator.run import main

sys.exit(min(1, main()))
