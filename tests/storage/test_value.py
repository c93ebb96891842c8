"""The face of every value: a type that leaves a question open is refused, strings have one too."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headrace.storage.digest import Digest
from headrace.storage.faces import face, frozen
from headrace.storage.freezing import Freezing
from headrace.storage.keyspace import Keyspace
from headrace.storage.stream.stream import Stream
from headrace.storage.value import Expiring, Freeable, Frozen, Value
from support.build import ROOT

# Every question with its arguments and the type of its answer.
QUESTIONS = {
    "Value": {
        "type_name": ("", "bytes"),
        "encoding": ("key: bytes", "bytes"),
        "size": ("", "int"),
        "is_empty": ("", "bool"),
        "used_bytes": ("samples: int", "int"),
        "copy": ("", "object"),
        "freeze": ("", "object"),
        "effort": ("", "int"),
        "free_some": ("most: int", "bool"),
        "add_to": ("digest: Digest", "None"),
        "attach": ("expiring: Expiring", "None"),
    },
    "Frozen": {
        "type_name": ("", "bytes"),
        "register": ("", "None"),
        "copied_bytes": ("", "int"),
        "thaw": ("", "list[Freeable]"),
        "free_some": ("most: int", "bool"),
    },
}
HEAD = """from headrace.storage.digest import Digest
from headrace.storage.value import Expiring
from headrace.storage.value import Freeable
from headrace.storage.value import Frozen, Value
"""


def type_without(face_name: str, left_out: str) -> str:
    """A class that answers every question but one, and a line that makes an object of it."""
    name = f"{face_name}Without_{left_out}"
    lines = [f"class {name}({face_name}):"]
    for question, (arguments, answer) in QUESTIONS[face_name].items():
        if question != left_out:
            given = f"self, {arguments}" if arguments else "self"
            lines.append(f"    def {question}({given}) -> {answer}: raise KeyError")
    return "\n".join([*lines, f"{name}()", ""])


def test_an_incomplete_type_is_refused_where_it_is_made(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    tree = tmp_path / "tree" / "headrace"
    tree.mkdir(parents=True)
    (tree / "storage").symlink_to(ROOT / "storage")
    (tree / "__init__.py").touch()
    cases = [(name, question) for name in QUESTIONS for question in ["", *QUESTIONS[name]]]
    source = HEAD + "".join(type_without(name, question) for name, question in cases)
    (tmp_path / "half.py").write_text(source)
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "mypy", "--strict", "--config-file=", "half.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(tree.parent), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    complaints = [line for line in ran.stdout.splitlines() if "error:" in line]
    wanted = [
        f'Cannot instantiate abstract class "{name}Without_{question}" '
        f'with abstract attribute "{question}"'
        for name, question in cases
        if question
    ]
    assert len(complaints) == len(wanted), ran.stdout + ran.stderr
    for complaint, text in zip(complaints, wanted, strict=True):
        assert text in complaint


def test_the_questions_are_those_of_the_face() -> None:
    for name, kinds in (("Value", (Value, Freeable)), ("Frozen", (Frozen, Freeable))):
        asked = {word for kind in kinds for word in vars(kind) if not word.startswith("_")}
        answered = {
            "effort",
            "removed_after_ms",
            "first_part_ms",
            "is_lasting",
        }  # where nothing else is said
        assert asked - answered == set(QUESTIONS[name]) - answered


@pytest.mark.parametrize(
    ("value", "encoding", "size", "used"),
    [
        (b"short", b"embstr", 5, 38),
        (b"x" * 41, b"raw", 41, 74),
        (-42, b"int", 3, 32),
        (bytearray(b"ab"), b"raw", 2, 35),
    ],
)
def test_a_string_has_a_face(value: object, encoding: bytes, size: int, used: int) -> None:
    answers = face(value)
    assert answers.type_name() == b"string"
    assert answers.encoding(b"k") == encoding
    assert answers.size() == size
    assert answers.used_bytes(5) == used
    assert answers.effort() == 0
    assert not answers.is_empty()
    assert answers.copy() == value
    assert answers.freeze() == frozen(value) == value


def test_what_is_written_into_is_copied() -> None:
    value = bytearray(b"ab")
    twin, kept = face(value).copy(), face(value).freeze()
    value += b"c"
    assert twin == kept == frozen(b"ab")
    assert isinstance(kept, bytes)


def test_a_stream_is_its_own_face() -> None:
    stream = Stream(100, 100)
    answers = face(stream)
    assert answers is stream
    assert (answers.type_name(), answers.encoding(b"k")) == (b"stream", b"stream")
    assert (answers.size(), answers.is_empty()) == (0, False)
    assert answers.effort() > 0


def test_what_is_no_value_has_no_face() -> None:
    with pytest.raises(TypeError):
        face("text")


class Bag(Value):
    """A type of this file alone: some words, freed one by one."""

    def __init__(self, words: list[bytes]) -> None:
        self.words = words
        self.frozen: FrozenBag | None = None
        self.attached: Expiring | None = None

    def is_frozen(self) -> bool:
        return self.frozen is not None

    def type_name(self) -> bytes:
        return b"bag"

    def encoding(self, key: bytes) -> bytes:
        return b"words"

    def size(self) -> int:
        return len(self.words)

    def is_empty(self) -> bool:
        return not self.words

    def used_bytes(self, samples: int) -> int:
        return 10 * len(self.words)

    def copy(self) -> Bag:
        return Bag(list(self.words))

    def freeze(self) -> FrozenBag:
        return FrozenBag(self)

    def effort(self) -> int:
        return len(self.words)

    def free_some(self, most: int) -> bool:
        del self.words[-most:]
        return not self.words

    def add_to(self, digest: Digest) -> None:
        for word in self.words:
            digest.mix(word)

    def attach(self, expiring: Expiring) -> None:
        self.attached = expiring


class FrozenBag(Frozen):
    def __init__(self, bag: Bag) -> None:
        self.bag = bag
        self.words = list(bag.words)

    def type_name(self) -> bytes:
        return b"bag"

    def register(self) -> None:
        self.bag.frozen = self

    def copied_bytes(self) -> int:
        return len(b"".join(self.words))

    def thaw(self) -> list[Freeable]:
        self.bag.frozen = None
        return [self]

    def free_some(self, most: int) -> bool:
        del self.words[-most:]
        return not self.words


def test_another_type_lives_in_a_keyspace() -> None:
    expired: list[tuple[int, bytes]] = []
    unused: list[Freeable] = []
    expiring = Expiring()
    db = Keyspace(0, expired, unused, expiring)
    bag = Bag([b"a", b"bc"])
    db.put(b"bag", bag, 1)
    assert bag.attached == expiring
    freezing = Freezing([db], 1)
    db.before_change(b"bag")
    bag.words.append(b"d")
    (key,) = freezing.next_keys(10)
    assert isinstance(key.value, FrozenBag)
    assert key.value.words == [b"a", b"bc"]
    assert bag.frozen == key.value
    freezing.release(key, unused)
    assert not bag.is_frozen()
    assert freezing.copied_bytes() == 3
    assert unused == [key.value]
    freezing.end(unused)
    db.expire_at(b"bag", 5)
    assert db.get(b"bag", 6) is None
    assert unused[1:] == [bag]
    assert not bag.free_some(1)
    assert bag.free_some(5)


def test_a_value_without_pieces_is_dropped() -> None:
    unused: list[Freeable] = []
    db = Keyspace(0, [], unused, Expiring())
    for key, value in ((b"empty", Bag([])), (b"full", Bag([b"x"])), (b"text", b"x")):
        db.put(key, value, 1)
    db.clear()
    (emptied,) = unused
    unused.clear()
    while not emptied.free_some(1):
        pass
    assert [found.words for found in unused if isinstance(found, Bag)] == [[b"x"]]
