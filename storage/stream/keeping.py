"""Who wants to keep what a stream and its parts were before they change: a frozen stream does.

The parts know these and not what freezing is, so that freezing can know the parts.
"""

from __future__ import annotations

from mypy_extensions import trait

from headrace.storage.stream.block import Block
from headrace.storage.stream.nack import Nack
from headrace.storage.stream.producer import Producer


@trait
class BlockKeeper:
    """Is told by a stream of its blocks, and of its end."""

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
    """Is told by a group of its pending entries."""

    def keep(self, nack: Nack) -> None:
        """A pending entry is about to change."""
        raise NotImplementedError


@trait
class ProducerKeeper:
    """Is told by an IDMP map of its producers."""

    def keep(self, producer: Producer) -> None:
        """What a producer has is about to change."""
        raise NotImplementedError
