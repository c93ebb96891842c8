"""What the commands of streams do in a region: where each step is found."""

from __future__ import annotations

from headrace.protocol.packing import Packer
from headrace.regions.commands import groups, removals, stable_ids, xadd
from headrace.regions.commands.settings import set_id_everywhere, set_limits_everywhere
from headrace.regions.exchange.effects import region_of
from headrace.server.commands.streams.args import TrimOptions
from headrace.server.commands.streams.options import AddOptions, ReadOptions
from headrace.server.commands.streams.shared import SharedStreams, shares_streams
from headrace.server.dispatch.call import Call
from headrace.server.state import Server
from headrace.server.waiting import Parked
from headrace.storage.stream.groups import Group
from headrace.storage.stream.part import Part
from headrace.storage.stream.producer import Iid
from headrace.storage.stream.stream import Stream
from headrace.storage.vectors import ID


class RegionalStreams(SharedStreams):
    """What it means here to add, trim, delete, read, and so on; see ``SharedStreams``."""

    def new(self, call: Call, key: bytes) -> Stream:
        return xadd.new_regional_stream(call, key)

    def finds_seq(self, call: Call, word: bytes, next_seq: bool) -> bool:
        return xadd.finds_seq(region_of(call.server).mode, word, next_seq)

    def is_manual(self, call: Call, stream: Stream, ms: int) -> bool:
        return xadd.is_manual(call, stream, ms)

    def added(
        self,
        call: Call,
        stream: Stream,
        at: int,
        options: AddOptions | None,
        pid: bytes,
        iid: Iid,
        manual: bool,
        created: bool,
    ) -> object:
        return xadd.report_added(call, stream, at, options, pid, iid, manual, created)

    def trim(self, call: Call, key: bytes, stream: Stream, options: TrimOptions) -> int:
        return removals.trim_everywhere(call, key, stream, options)

    def delete(self, call: Call, key: bytes, stream: Stream, ids: list[ID]) -> int:
        return removals.delete_everywhere(call, key, stream, ids)

    def delete_by_mode(
        self, call: Call, key: bytes, stream: Stream, mode: int, ids: list[ID]
    ) -> object:
        return removals.delete_by_mode(call, key, stream, mode, ids)

    def set_id(self, call: Call, stream: Stream, new_id: ID) -> object:
        return set_id_everywhere(call, stream, new_id)

    def set_limits(
        self, call: Call, key: bytes, stream: Stream, duration_s: int, maxsize: int
    ) -> None:
        set_limits_everywhere(call, key, stream, duration_s, maxsize)

    def create_group(self, call: Call, stream: Stream, position: ID, created: bool) -> object:
        return groups.create_everywhere(call, stream, position, created)

    def destroy_group(self, call: Call, stream: Stream) -> int:
        return groups.destroy_everywhere(call, stream)

    def set_mode(self, call: Call, stream: Stream, name: bytes, most: int) -> None:
        groups.set_mode_everywhere(call, stream, name, most)

    def set_place(self, stream: Stream, group: Group, position: ID | None) -> None:
        groups.set_place(stream, group, position)

    def place_record(self, key: bytes, group: Group, parts: list[Part]) -> list[bytes]:
        return groups.place_record(key, group, parts)

    def release_held(
        self, call: Call, key: bytes, stream: Stream, group: Group, consumer: bytes
    ) -> None:
        groups.release_held(call, key, stream, group, consumer)

    def note_acknowledged(self, call: Call, key: bytes, stream: object, group: Group) -> None:
        groups.note_acknowledged(call, key, stream, group)

    def ack_and_delete(
        self, call: Call, key: bytes, stream: Stream, group: Group, mode: int, ids: list[ID]
    ) -> object:
        return removals.ack_and_delete(call, key, stream, group, mode, ids)

    def bound_of(self, call: Call, stream: Stream | None) -> ID:
        return stable_ids.bound_of(call, stream)

    def first_after(self, text: bytes, stream: Stream | None, bound: ID) -> ID:
        return stable_ids.first_after(text, stream, bound)

    def parts_up_to(
        self, stream: Stream, after: ID, bound: ID, count: int, most_bytes: int
    ) -> list[Part]:
        return stable_ids.parts_up_to(stream, after, bound, count, most_bytes)

    def wait_for_stable(
        self, call: Call, options: ReadOptions, keys: list[bytes], after: list[ID], bounds: list[ID]
    ) -> Parked:
        return stable_ids.wait_for_stable(call, options, keys, after, bounds)

    def add_lanes(self, out: Packer, server: Server, stream: Stream) -> None:
        stable_ids.add_lanes(out, server, stream)

    def add_places(self, out: Packer, group: Group) -> None:
        stable_ids.add_places(out, group)


shares_streams(RegionalStreams())
