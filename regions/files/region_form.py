"""The record of a snapshot's region: what it knows of itself and of the others."""

from __future__ import annotations

from typing import Final

from msgspec.msgpack import Decoder as Unpacker
from msgspec.msgpack import Encoder as Packer

from headrace.persistence.forms.form import MemberForm
from headrace.persistence.forms.records import REGION, REGION_TEXTS_AT, Record
from headrace.persistence.forms.table import register_members
from headrace.regions.knowledge.region import region_as
from headrace.regions.knowledge.stability import Beat
from headrace.regions.lanes.tombstones import unpack_tombstone
from headrace.storage.sharing import REGION_MAX, Member
from headrace.storage.vectors import (
    EPOCH_MAX,
    NUMBER_MAX,
    check_origin,
    decode_numbers,
    encode_numbers,
)

_Others = tuple[
    bytes,  # numbers
    list[int],  # joined
    list[tuple[int, int]],  # forgotten, in which epoch
    list[tuple[int, int, bytes, int]],  # beats: of a region in an epoch, numbers, promise
    list[tuple[int, int]],  # promises
    list[tuple[bytes, bytes]],  # nonces, by origin
    list[tuple[int, int]],  # versions
]

_pack: Final = Packer().encode
_others: Final = Unpacker(_Others).decode


class RegionForm(MemberForm):
    """The form of regions."""

    def record(self, member: Member) -> Record:
        region = region_as(member)
        record = Record(REGION)
        record.table = [
            region.id,
            region.epoch,
            region.generation,
            region.count,
            region.last_lane,
            max(region.promise_ms, region.kept_promise_ms),
        ]
        record.add(region.database)
        record.add(region.nonce)
        record.add(region.caught)
        beats = [
            (number, beat.epoch, encode_numbers(beat.numbers), beat.promise_ms)
            for number, beat in sorted(region.beats.items())
        ]
        others = (
            encode_numbers(region.numbers),
            sorted(region.joined),
            sorted(region.forgotten.items()),
            beats,
            sorted(region.promises.items()),
            sorted(region.nonces.items()),
            sorted(region.versions.items()),
        )
        record.add(_pack(others))
        return record

    def read(
        self, member: Member, table: list[int], nonce: bytes, caught: bytes, document: bytes
    ) -> None:
        region = region_as(member)
        _, epoch, generation, count, last_lane, promise_ms = table[:REGION_TEXTS_AT]
        numbers, joined, forgotten, beats, promises, nonces, versions = _others(document)
        if not (
            0 <= epoch <= EPOCH_MAX and 0 <= count <= NUMBER_MAX and 0 <= last_lane <= NUMBER_MAX
        ):
            raise ValueError("an epoch and its records are none")
        if generation < 0 or promise_ms < 0:
            raise ValueError("a generation or a promise is none")
        region.begin_epoch(epoch, generation, nonce)
        region.numbers = decode_numbers(numbers)
        region.count = count
        region.last_lane = last_lane
        region.promise_ms = promise_ms
        region.kept_promise_ms = promise_ms
        region.caught = caught
        region.joined = {_member(number) for number in joined}
        region.forgotten = {_member(number): last for number, last in forgotten}
        region.beats = {
            _member(number): Beat(beat_epoch, decode_numbers(known), beat_ms)
            for number, beat_epoch, known, beat_ms in beats
        }
        region.promises = {_member(number): moment_ms for number, moment_ms in promises}
        region.versions = {_member(number): version for number, version in versions}
        region.nonces = {check_origin(origin): met for origin, met in nonces}
        if region.origin in region.numbers:
            raise ValueError("the own origin is none of the others")

    def from_tombstone(self, member: Member, value: object | None) -> object | None:
        """As in ``MemberForm``. Only streams are texts there: regions share no other type."""
        return unpack_tombstone(value, region_as(member)) if isinstance(value, bytes) else value


def _member(number: int) -> int:
    if not 0 < number <= REGION_MAX:
        raise ValueError("a region is none")
    return number


register_members(RegionForm())
