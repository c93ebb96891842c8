"""What is raised where packed bytes are none."""


class Broken(Exception):
    """The bytes are not what they are to be."""
