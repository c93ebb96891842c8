"""Another region that has called here: has it shown the secret, who is it, what is it sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.regions.exchange.exchange import RecordLog, Source
from headrace.regions.exchange.hello import BadHello, Hello, as_reply, hello_of, read_hello, refusal
from headrace.regions.exchange.secret import answering_code, asking_code, is_nonce, new_nonce, same
from headrace.regions.knowledge.region import Region
from headrace.storage.vectors import Numbers, epoch_of, region_of


class Caller:
    """One connection at the port for other regions, from the side that is asked.

    Args:
        members: which regions take part.

    Attributes:
        proven: it has shown that it has the secret, if there is one.
        source: what answers its PULLs; None before it has introduced itself.
        called: how it has introduced itself, if it is of this database, and another region's only
            life; also where it was refused because it knows more of this region than that does.
        heard_ms: when it asked for something last, of the clock that only measures.
    """

    def __init__(
        self,
        region: Region,
        log: RecordLog,
        secret: bytes,
        members: Callable[[], list[int]],
    ) -> None:
        self.proven = not secret
        self.source: Source | None = None
        self.called: Hello | None = None
        self.heard_ms = 0
        self._region: Final = region
        self._log: Final = log
        self._secret: Final = secret
        self._members: Final = members
        self._nonce = b""
        self._caller_nonce = b""

    def challenge(self, nonce: bytes) -> bytes:
        """Answer a nonce with one.

        Raises:
            CommandError: there is no secret, or the nonce is none.
        """
        if not self._secret:
            raise CommandError(errors.AA_SECRET_NONE)
        if not is_nonce(nonce):
            raise CommandError(errors.aa_malformed(b"a nonce has 64 digits"))
        self._caller_nonce = nonce
        self._nonce = new_nonce()
        return self._nonce

    def prove(self, code: bytes) -> bytes:
        """Look at the caller's code, and answer with the one of this side.

        Raises:
            CommandError: the caller has another secret.
        """
        nonce = self._nonce
        self._nonce = b""  # it is good for one code
        if not nonce:
            raise CommandError(errors.AA_NO_CHALLENGE)
        if not same(code, asking_code(self._secret, self._caller_nonce, nonce)):
            raise CommandError(errors.AA_SECRET_WRONG)
        self.proven = True
        return answering_code(self._secret, self._caller_nonce, nonce)

    def greet(self, words: list[bytes]) -> list[object]:
        """Answer the words of AA HELLO.

        Raises:
            CommandError: the two have nothing to do with each other.
        """
        region = self._region
        log = self._log
        try:
            hello = read_hello(words)
        except BadHello as error:
            raise as_reply(error) from None
        line = refusal(region, hello, region.count, True)
        if not line or line.startswith(b"AAAHEAD"):
            self.called = hello
        if line:
            raise CommandError(line)
        region.meet(hello.region, hello.begun)
        reply = hello_of(region, self._known_to(hello))
        reply.remembered = region.nonces.get(hello.origin, b"")
        reply.reach = {origin: log.reach(origin) for origin in log.origins()}
        reply.members = self._members()
        region.note_met(hello.origin, hello.nonce, hello.version)
        self.source = Source(region, log, hello)
        return reply.reply()

    def _known_to(self, hello: Hello) -> Numbers:
        """Return what is known here, as the caller is to hear it.

        Its epoch has to be above all that it has had, also above those without a record. It can
        begin another one as long as it has written nothing.
        """
        region = self._region
        known = region.known()
        above = -1 if not hello.nonce else hello.epoch
        if not hello.nonce or not hello.numbers.get(hello.origin, 0):
            for origin in region.nonces:
                if region_of(origin) == hello.region and epoch_of(origin) > above:
                    known.setdefault(origin, 0)
        return known

    def source_or_refuse(self) -> Source:
        """Return what answers its PULLs.

        Raises:
            CommandError: it has not introduced itself.
        """
        if self.source is None:
            raise CommandError(errors.AA_HELLO_FIRST)
        return self.source
