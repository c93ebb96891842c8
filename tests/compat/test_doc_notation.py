from __future__ import annotations

import re

import pytest

import headrace.server.commands.families  # noqa: F401  (importing it fills the command table)
from headrace.compat.doc_notation import Argument, parse, render
from headrace.server.commands.documentation import documentation

DOCS = documentation()


def facts(argument: Argument) -> tuple[object, ...]:
    return (
        argument.name,
        argument.kind,
        argument.token,
        argument.optional,
        argument.multiple,
        [facts(child) for child in argument.arguments],
    )


def only(syntax: str) -> Argument:
    (argument,) = parse(syntax)
    return argument


def test_plain_words() -> None:
    assert facts(only("value")) == ("value", "string", "", False, False, [])
    assert facts(only("seconds:integer")) == ("seconds", "integer", "", False, False, [])
    assert facts(only("pattern")) == ("pattern", "pattern", "", False, False, [])
    assert facts(only("key...")) == ("key", "key", "", False, True, [])


def test_key_specs() -> None:
    first, second = parse("key newkey:key#1")
    assert (first.key_spec, second.key_spec) == (0, 1)
    assert only("value").key_spec == -1


def test_tokens() -> None:
    assert facts(only("KEEPTTL")) == ("keepttl", "pure-token", "KEEPTTL", False, False, [])
    assert facts(only("EX=s:integer")) == ("s", "integer", "EX", False, False, [])
    assert facts(only("'~'=almost")) == ("almost", "pure-token", "~", False, False, [])


def test_lists() -> None:
    one: tuple[object, ...] = ("a", "pure-token", "A", False, False, [])
    two: tuple[object, ...] = ("b", "string", "", False, False, [])
    assert facts(only("x(A | b)")) == ("x", "oneof", "", False, False, [one, two])
    assert facts(only("[T=x(A b)...]")) == ("x", "block", "T", True, True, [one, two])
    inner, outer = parse("x(y(A | b) b) z")
    assert (inner.kind, inner.arguments[0].kind, outer.name) == ("block", "oneof", "z")


def test_versions_and_display() -> None:
    argument = only("[ADDR=addr<ip:port>@6.2.0!7.0.0...]")
    assert (argument.since, argument.deprecated_since) == ("6.2.0", "7.0.0")
    assert (argument.display, argument.name, argument.multiple) == ("ip:port", "addr", True)


def test_a_word_each_time() -> None:
    argument = only("[PREFIX=prefix...+]")
    assert (argument.multiple, argument.multiple_token, argument.optional) == (True, True, True)
    assert render([argument]) == "[PREFIX prefix [PREFIX prefix ...]]"
    assert not only("[ID=id...]").multiple_token


@pytest.mark.parametrize(
    "syntax", ["[a", "a]", "a(b", "a)", "(", "a %", "'x'", "'x", "A=", "a@", "x(a |", "key#"]
)
def test_malformed(syntax: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse(syntax)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("get", "key"),
        ("quit", ""),
        ("mset", "key value [key value ...]"),
        ("scan", "cursor [MATCH pattern] [COUNT count] [TYPE type]"),
        ("replicaof", "<host port | NO ONE>"),
        ("hello", "[protover [AUTH username password] [SETNAME clientname]]"),
        (
            "xtrim",
            "key <MAXLEN | MINID> [= | ~] threshold [LIMIT count] [KEEPREF | DELREF | ACKED]",
        ),
    ],
)
def test_render(name: str, shown: str) -> None:
    assert render(DOCS[name].arguments()) == shown


def test_every_doc_is_complete() -> None:
    for name, doc in DOCS.items():
        assert name == name.lower()
        assert re.fullmatch(r"\d+\.\d+\.\d+", doc.since), name
        assert doc.summary.endswith("."), name
        assert len(doc.summary) < 120, name
        assert bool(doc.arguments()) == bool(doc.syntax), name
        for version, change in doc.history:
            assert re.fullmatch(r"\d+\.\d+\.\d+", version), name
            assert change.endswith("."), name
