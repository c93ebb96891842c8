import sys

from simulator.planted import plant_asked

plant_asked()

from simulator.run import main  # noqa: E402  (a bug is planted while it is imported)

sys.exit(min(1, main()))
