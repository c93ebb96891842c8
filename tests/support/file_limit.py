"""Files that the system lets grow no longer than this: a disk that is full at a chosen byte."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

from support.process import Process


@contextmanager
def file_limit(size: int) -> Iterator[None]:
    """Refuse this process longer files for a while; the write that meets the limit is short."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def limit_files(server: Process, size: int) -> None:
    """Refuse a server longer files from now on."""
    hard = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, hard))
