"""Those that keep what a stream and its parts were before they change: frozen streams do.

The parts know only these classes, and not freezing itself, so that freezing can know the parts.
"""

from __future__ import annotations

from mypy_extensions import trait

from headrace.storage.stream.block import Block
from headrace.storage.stream.pel import Nack
from headrace.storage.stream.producer import Producer


@trait
class BlockKeeper:
    """A stream reports to it changes of its blocks, and its end."""

    def keep(self, block: Block) -> None:
        """A sealed block is about to change."""
        raise NotImplementedError

    def keep_last(self, blocks: list[Block]) -> None:
        """The last block with entries is about to be taken off ``blocks``, to be appended to."""
        raise NotImplementedError

    def abandon(self) -> None:
        """Nobody else uses the stream any more: whoever thaws it is to free it, too."""
        raise NotImplementedError


@trait
class NackKeeper:
    """A group reports to it changes of its pending entries."""

    def keep(self, nack: Nack) -> None:
        """A pending entry is about to change."""
        raise NotImplementedError


@trait
class ProducerKeeper:
    """An IDMP map reports to it changes of its producers."""

    def keep(self, producer: Producer) -> None:
        """What a producer has is about to change."""
        raise NotImplementedError
