"""COMMAND: the command table for clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.compat import errors
from headrace.compat.errors import CommandError
from headrace.compat.glob import matches
from headrace.protocol.replies import Map, Set, Status
from headrace.server.commands.documentation import documentation
from headrace.server.dispatch.call import Call
from headrace.server.dispatch.key_specs import has_keys, key_uses
from headrace.server.dispatch.rows import (
    FLAG_NAMES,
    KEY_FLAGS,
    NO_MANDATORY_KEYS,
    TABLE,
    Command,
    KeySpec,
    acl_categories,
    row_of,
)

if TYPE_CHECKING:
    from headrace.compat.doc_notation import Argument


def command_(call: Call) -> object:
    """Describe every command; the reply is that of COMMAND INFO."""
    return [_info(row) for row in TABLE.values()]


def command_count(call: Call) -> object:
    """Count the commands, subcommands not included."""
    return len(TABLE)


def command_info(call: Call) -> object:
    """Describe commands, all of them where none is named.

    Reply: for each a list of name, arity, flags, first key, last key, key step, ACL categories,
        tips, key specs and subcommands; null for a name that is no command.
    """
    if len(call.argv) == 2:
        return command_(call)
    replies: list[object] = []
    for name in call.argv[2:]:
        row = _lookup_name(name)
        replies.append(None if row is None else _info(row))
    return replies


def command_docs(call: Call) -> object:
    """Document commands, all without a name. Reply: map of name to a map, without unknown names."""
    rows: list[Command] = []
    if len(call.argv) == 2:
        rows.extend(TABLE.values())
    for name in call.argv[2:]:
        row = _lookup_name(name)
        if row is not None:
            rows.append(row)
    return _docs_by_name(rows)


def command_list(call: Call) -> object:
    """Reply: list of names, subcommands included."""
    argv = call.argv
    kind = b""
    wanted = b""
    if len(argv) > 2:
        # The filter is the last thing on the line.
        if len(argv) != 5 or argv[2].upper() != b"FILTERBY":
            raise CommandError(errors.SYNTAX)
        kind = argv[3].upper()
        wanted = argv[4]
        if kind not in (b"MODULE", b"ACLCAT", b"PATTERN"):
            raise CommandError(errors.SYNTAX)
    names: list[object] = []
    for row in TABLE.values():
        if _passes(row, kind, wanted):
            names.append(row.name)
        names.extend([sub.name for sub in row.subcommands.values() if _passes(sub, kind, wanted)])
    return names


def command_getkeys(call: Call) -> object:
    """Pick the keys out of a request. Reply: list of keys."""
    return [key for key, _ in _keys_of(call.argv[2:])]


def command_getkeysandflags(call: Call) -> object:
    """Pick the keys out of a request. Reply: list of pairs of a key and its flags."""
    return [[key, _key_flags(flags)] for key, flags in _keys_of(call.argv[2:])]


def _lookup_name(name: bytes) -> Command | None:
    """Return the row of ``name`` or ``container|subcommand``, in any case."""
    parent, bar, child = name.lower().partition(b"|")
    row = TABLE.get(parent)
    return row if row is None or not bar else row.subcommands.get(child)


def _passes(row: Command, kind: bytes, wanted: bytes) -> bool:
    if kind == b"PATTERN":
        return matches(wanted, row.name, ignore_case=True)
    if kind == b"ACLCAT":
        return wanted.lower() in acl_categories(row)
    return not kind  # no command of ours comes from a module


def _keys_of(request: list[bytes]) -> list[tuple[bytes, list[str]]]:
    row = row_of(request)
    if row is None:
        raise CommandError(errors.INVALID_COMMAND)
    if not has_keys(row):
        raise CommandError(errors.NO_KEY_ARGUMENTS)
    if not row.arity_fits(len(request)):
        raise CommandError(errors.INVALID_ARGUMENT_COUNT)
    uses = key_uses(row, request)
    if not uses and not row.flags & NO_MANDATORY_KEYS:
        raise CommandError(errors.INVALID_ARGUMENTS)
    return [(request[use.position], use.flags) for use in uses]


def _info(row: Command) -> list[object]:
    flags: list[object] = [Status(name) for bit, name in FLAG_NAMES if row.flags & bit]
    categories: list[object] = [Status(b"@" + name) for name in acl_categories(row)]
    tips: list[object] = [tip.encode() for tip in row.tips]
    specs: list[object] = [_key_spec(spec) for spec in row.keys]
    first, last, step = _plain_range(row)
    children: object = Set([])
    if row.subcommands:
        children = [_info(child) for child in row.subcommands.values()]
    return [
        row.name,
        row.arity,
        Set(flags),
        first,
        last,
        step,
        Set(categories),
        Set(tips),
        Set(specs),
        children,
    ]


def _plain_range(row: Command) -> tuple[int, int, int]:
    """Return first key, last key and step; zeros where three numbers cannot say it.

    Specs that begin at an index count; several are joined when each key follows on the last.
    """
    first = 0
    last = 0
    step = 0
    for spec in row.keys:
        begin = spec.begin
        if not isinstance(begin, int) or spec.counted or spec.unknown:
            continue
        if len(row.keys) > 1 and (spec.step != 1 or (first and begin != last + 1)):
            continue
        if not first:
            first = begin
            step = spec.step
        last = spec.last if spec.last < 0 else begin + spec.last
    return first, last, step


def _key_flags(flags: list[str]) -> Set:
    return Set([Status(shown) for name, shown in KEY_FLAGS.items() if name in flags])


def _key_spec(spec: KeySpec) -> Map:
    begin = spec.begin
    if spec.unknown:
        unknown = _typed(b"unknown", [])
        return Map(
            [
                (b"flags", _key_flags(spec.flags)),
                (b"begin_search", unknown),
                (b"find_keys", unknown),
            ]
        )
    if isinstance(begin, int):
        search = _typed(b"index", [(b"index", begin)])
    else:
        search = _typed(b"keyword", [(b"keyword", begin.encode()), (b"startfrom", spec.begin_from)])
    if not spec.counted:
        find = _typed(
            b"range",
            [(b"lastkey", spec.last), (b"keystep", spec.step), (b"limit", spec.limit)],
        )
    else:
        find = _typed(b"keynum", [(b"keynumidx", 0), (b"firstkey", 1), (b"keystep", spec.step)])
    return Map(
        [
            (b"flags", _key_flags(spec.flags)),
            (b"begin_search", search),
            (b"find_keys", find),
        ]
    )


def _typed(kind: bytes, spec: list[tuple[object, object]]) -> Map:
    return Map([(b"type", kind), (b"spec", Map(spec))])


def _docs_by_name(rows: list[Command]) -> Map:
    return Map([(row.name, _docs(row)) for row in rows])


def _docs(row: Command) -> Map:
    doc = documentation()[row.name.decode()]
    pairs: list[tuple[object, object]] = [
        (b"summary", doc.summary.encode()),
        (b"since", doc.since.encode()),
        (b"group", doc.group.encode()),
    ]
    if doc.complexity:
        pairs.append((b"complexity", doc.complexity.encode()))
    if doc.internal:
        pairs.append((b"doc_flags", Set([Status(b"syscmd")])))
    if doc.deprecated_since:
        pairs.append((b"doc_flags", Set([Status(b"deprecated")])))
        pairs.append((b"deprecated_since", doc.deprecated_since.encode()))
    if doc.replaced_by:
        pairs.append((b"replaced_by", doc.replaced_by.encode()))
    if doc.history:
        changes: list[object] = [[since.encode(), what.encode()] for since, what in doc.history]
        pairs.append((b"history", Set(changes)))
    if doc.syntax:
        pairs.append((b"arguments", [_argument(argument) for argument in doc.arguments()]))
    if row.subcommands:
        pairs.append((b"subcommands", _docs_by_name(list(row.subcommands.values()))))
    return Map(pairs)


def _argument(argument: Argument) -> Map:
    pairs: list[tuple[object, object]] = [
        (b"name", argument.name.encode()),
        (b"type", argument.kind.encode()),
    ]
    if not argument.arguments:
        pairs.append((b"display_text", argument.display.encode()))
    if argument.key_spec >= 0:
        pairs.append((b"key_spec_index", argument.key_spec))
    if argument.token or argument.kind == "pure-token":
        pairs.append((b"token", argument.token.encode()))
    if argument.since:
        pairs.append((b"since", argument.since.encode()))
    if argument.deprecated_since:
        pairs.append((b"deprecated_since", argument.deprecated_since.encode()))
    flags: list[object] = []
    if argument.optional:
        flags.append(Status(b"optional"))
    if argument.multiple:
        flags.append(Status(b"multiple"))
    if argument.multiple_token:
        flags.append(Status(b"multiple_token"))
    if flags:
        pairs.append((b"flags", Set(flags)))
    if argument.arguments:
        pairs.append((b"arguments", [_argument(child) for child in argument.arguments]))
    return Map(pairs)
