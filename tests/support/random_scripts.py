"""Scripts by chance that call the libraries of scripts, rightly and wrongly; scripts in files."""

from __future__ import annotations

import hashlib
import random
import struct

LETTERS = [*"abcxyz_/ ", '\\"', *(f"\\{code:03d}" for code in (92, 10, 9, 1, 127, 128, 233, 0))]
NUMBERS = [
    "0", "1", "2", "3", "7", "10", "-1", "-5", "127", "128", "255", "256", "65535", "65536", "0.5",
    "-32", "-33", "-128", "-129", "-32768", "-32769", "2^31", "2^31-1", "-2^31", "2^32", "2^51",
    "2^52+0.5", "2^53", "-2^53", "2^63", "-2^63", "2^64", "1e15", "1e14", "1e300", "1e-5", "0.1",
    "1/3", "3.14159", "1e100", "-1.5", "2.5", "1/0", "-1/0", "1e38", "1e39", "123456789012",
]  # fmt: skip
WORDS = ["nil", "true", "false", "cjson.null", "{}", "print_", "'5'", "' 0x10 '", "'x'", "''",
         "'1e2'", "'1_0'", "'inf'", "'0x1p3'", "tostring"]  # fmt: skip
JSON = [
    "1", "-1", "0", "01", "-", "+1", "+", ".5", "1.", "1.5e3", "1e", "1e+", "0x1F", "0x", "-0",
    "nan", "NaN", "-nan", "nan(1)", "inf", "-Infinity", "infinit", "true", "tru", "false", "null",
    "nul", '"a"', '"', '"\\u0041"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\u12"', '"\\x"', '"\\',
    '"\\\\"', '"a\\"b"', "{}", "[]", "[", "]", "{", "}", ",", ":", " ", "\t", "\n", "\r", "\f",
    '"k":', '{"a":1}', "[1,2]", '{"a":{"b":[null]}}', "[[]]", "\0", "1e999", "1E5", "0x1p4", "é",
    '"é"', '"/"', '"\x7f"', '"\n"', "12345678901234567890", "[1 ,2 ]", '{"a" : 1 , "b":2}',
]  # fmt: skip
FORMATS = [*"bBhHlLTiIfdsxc><!= z-", "i3", "I7", "i0", "i16", "I32", "i33", "c0", "c3", "!4", "!3",
           "!16", "i99999999999", "\\0", "c1c0", "Bc0"]  # fmt: skip
FUNCTIONS = {
    "cjson": ["encode", "decode", "encode_max_depth", "decode_max_depth", "encode_sparse_array",
              "encode_number_precision", "encode_invalid_numbers", "decode_invalid_numbers",
              "encode_keep_buffer", "decode_array_with_array_mt"],
    "cmsgpack": ["pack", "unpack", "unpack_one", "unpack_limit"],
    "struct": ["pack", "unpack", "size"],
    "bit": ["tobit", "tohex", "bnot", "band", "bor", "bxor", "lshift", "rshift", "arshift", "rol",
            "ror", "bswap"],
}  # fmt: skip
# What a script got, in a form in which nothing is lost.
SHOW = """local show
function show(value)
  local kind = type(value)
  if kind == 'table' then
    local items = {}
    for key, item in pairs(value) do
      items[#items + 1] = show(key) .. '=' .. show(item)
    end
    table.sort(items)
    return '{' .. table.concat(items, ',') .. '}'
  elseif kind == 'number' then
    return string.format('%.17g', value)
  elseif kind == 'function' then
    return kind
  end
  return kind .. ':' .. tostring(value)
end
local function shown(...)
  local all = {}
  for index = 1, select('#', ...) do
    all[index] = show((select(index, ...)))
  end
  return all
end
"""
RESET = """cjson.encode_max_depth(1000) cjson.decode_max_depth(1000)
cjson.encode_sparse_array(false, 2, 10) cjson.encode_number_precision(14)
cjson.encode_invalid_numbers(false) cjson.decode_invalid_numbers(true)
cjson.decode_array_with_array_mt(false) cjson.encode_keep_buffer(true)
"""


CALL = b"local got = redis.pcall(unpack(ARGV)) return type(got) == 'table' and got.err == nil"
FAIL = b"redis.call(unpack(ARGV)) return redis.error_reply('NO reason')"
SHA = hashlib.sha1(CALL).hexdigest().encode()
LIBRARY = b"""#!lua name=called
redis.register_function('call', function(keys, words) redis.pcall(unpack(words)) end)"""
LEARNED = [[b"SCRIPT", b"LOAD", CALL], [b"FUNCTION", b"LOAD", b"REPLACE", LIBRARY]]


def recorded(rng: random.Random, words: list[bytes], may_fail: bool = True) -> list[list[bytes]]:
    """Return how a file or a master before Redis 7.0 says that a script called a command.

    ``LEARNED`` stands before it. Redis 8.10 crashes at a file with a script that fails.
    """
    scripts = [[b"EVAL", CALL], [b"EVALSHA", SHA], [b"evalsha", SHA.upper()], [b"FCALL", b"call"]]
    made = [[*rng.choice([*scripts, [b"eval", FAIL]] if may_fail else scripts), b"0", *words]]
    return made if rng.random() < 0.8 else [[b"MULTI"], *made, [b"EXEC"]]


def quoted(data: bytes) -> str:
    """A string of Lua."""
    return '"' + "".join(f"\\{byte:03d}" for byte in data) + '"'


class RandomScripts:
    """Makes scripts.

    Keys stay below 32 bytes: from there on, two builds of Lua may keep them in different order.
    """

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng

    def script(self) -> bytes:
        """A script, which leaves the libraries as they are at first."""
        rng = self._rng
        library = rng.choice(list(FUNCTIONS))
        if rng.random() < 0.15:
            name = rng.choice(FUNCTIONS[library])
            arguments = [self._any() for _ in range(rng.randrange(4))]
        else:
            name, arguments = getattr(self, f"_{library}")()
        return self._calling(library, name, ", ".join(arguments)).encode("latin-1")

    def _calling(self, library: str, name: str, arguments: str) -> str:
        """A call, made in one of the ways that decide what its errors say."""
        function = f"{library}.{name}"
        comma = ", " if arguments else ""
        way = self._rng.randrange(8)
        if library == "cjson" and name not in ("encode", "decode"):
            got = f"local got = {{pcall({function}{comma}{arguments})}}"
            return f"{SHOW}{got}\n{RESET}return shown(unpack(got))"
        if way == 0:
            return f"return {function}({arguments})"
        if way == 1:
            return f"\nlocal f = {function}\nreturn f({arguments})"
        if way == 2:
            return f"{SHOW}return shown(pcall(function()\nreturn {function}({arguments}) end))"
        if way == 3:
            return f"{SHOW}return shown(pcall(function()\nlocal x = {function}({arguments}) end))"
        if way == 4:
            return f"{SHOW}return shown({function}({arguments}))"
        return f"{SHOW}return shown(pcall({function}{comma}{arguments}))"

    # What is handed over

    def _any(self) -> str:
        rng = self._rng
        return rng.choice([rng.choice(NUMBERS), rng.choice(WORDS), self._text(), self.value(1)])

    def _text(self, most: int = 31) -> str:
        rng = self._rng
        size = rng.choice([0, 1, 3, 8, rng.randrange(most + 1)])
        return '"' + "".join(rng.choice(LETTERS) for _ in range(size)) + '"'

    def value(self, depth: int) -> str:
        """A value of Lua."""
        rng = self._rng
        kind = rng.randrange(10 if depth else 6)
        if kind < 2:
            return self._text(rng.choice([31, 31, 300]))
        if kind < 5:
            return rng.choice(NUMBERS[:-7])
        if kind == 5:
            return rng.choice(["true", "false", "cjson.null", "nil", "1/0", "-0.0", "tostring"][:5])
        items = [self.value(depth - 1) for _ in range(rng.choice([0, 1, 2, 3, 5, 16, 17]))]
        if kind < 8:
            return "{" + ", ".join(items) + "}"
        pairs = []
        for item in items:
            key = rng.choice([self._text(), self._text(), rng.choice(NUMBERS[:40]), "true"])
            pairs.append(f"[{key}] = {item}")
        return "{" + ", ".join(pairs) + "}"

    def _cjson(self) -> tuple[str, list[str]]:
        rng = self._rng
        if rng.random() < 0.4:
            return "encode", [self.value(3)]
        text = "".join(rng.choice(JSON) for _ in range(rng.randrange(1, 4)))
        form = rng.choice(["{}", "{}", "[{}]", "[1,{}", '{{"a":{}}}', '{{"a":{},"b"', " [{} ] "])
        return "decode", [quoted(form.format(text).encode("latin-1"))]

    def packed(self, depth: int) -> bytes:
        """A value in MessagePack, or something near it."""
        rng = self._rng
        kind = rng.randrange(12 if depth else 8)
        if kind == 0:
            return bytes([rng.randrange(256)])
        if kind == 1:
            size = rng.choice([1, 2, 4, 8])
            head = {1: 0xCC, 2: 0xCD, 4: 0xCE, 8: 0xCF}[size] + rng.choice([0, 4])
            return bytes([head]) + rng.choice([rng.randbytes(size), b"\xff" * size, b"\x80" * size])
        if kind == 2:
            return struct.pack(">Bf", 0xCA, rng.choice([0.5, 1e30, -0.0, 3.0]))
        if kind == 3:
            return struct.pack(">Bd", 0xCB, rng.choice([0.1, 1e300, -5.0, 2.0**60]))
        if kind == 4:
            text = rng.randbytes(rng.choice([0, 3, 31]))
            return bytes([0xA0 + len(text)]) + text
        if kind == 5:
            text = rng.randbytes(rng.choice([0, 5, 40, 200]))
            form = rng.choice([">BB", ">BH", ">BI"])
            head = {">BB": 0xD9, ">BH": 0xDA, ">BI": 0xDB}[form]
            return struct.pack(form, head, len(text) + rng.choice([0, 0, 0, 1])) + text
        if kind < 8:
            return rng.choice([b"\xc0", b"\xc2", b"\xc3", b"\x05", b"\xe0", b"\xff"])
        count = rng.choice([0, 1, 2, 3])
        if kind < 10:
            begun = rng.choice([bytes([0x90 + count]), struct.pack(">BH", 0xDC, count),
                               struct.pack(">BI", 0xDD, count)])  # fmt: skip
            return begun + b"".join(self.packed(depth - 1) for _ in range(count))
        begun = rng.choice([bytes([0x80 + count]), struct.pack(">BH", 0xDE, count),
                           struct.pack(">BI", 0xDF, count)])  # fmt: skip
        keys = [rng.choice([b"\xa1k", b"\xa1l", b"\x07", b"\xc3", b"\xc0"]) for _ in range(count)]
        return begun + b"".join(key + self.packed(depth - 1) for key in keys)

    def _cmsgpack(self) -> tuple[str, list[str]]:
        rng = self._rng
        if rng.random() < 0.4:
            return "pack", [self.value(3) for _ in range(rng.randrange(4))]
        data = b"".join(self.packed(3) for _ in range(rng.randrange(4)))
        if rng.random() < 0.2:
            data = data[: rng.randrange(len(data) + 1)]
        name = rng.choice(FUNCTIONS["cmsgpack"][1:])
        places = [rng.choice(["0", "1", "2", "3", "-1", "1.5", "100", "'1'", "nil", "{}", "1/0"])
                  for _ in range(rng.randrange(3))]  # fmt: skip
        return name, [quoted(data), *places]

    def _struct(self) -> tuple[str, list[str]]:
        rng = self._rng
        form = "".join(rng.choice(FORMATS) for _ in range(rng.choice([1, 1, 2, 3, 5])))
        name = rng.choice(FUNCTIONS["struct"])
        if name == "size":
            return name, [f'"{form}"']
        if name == "pack":
            values = [rng.choice([rng.choice(NUMBERS), rng.choice(NUMBERS), self._text()])
                      for _ in range(rng.choice([len(form), len(form), 0, 1, 2]))]  # fmt: skip
            return name, [f'"{form}"', *values]
        some = rng.randbytes(rng.choice([0, 1, 4, 8, 40]))
        data = rng.choice([some, b"\3abcdefghij\0k", b"3abc"])
        place = rng.choice([[], [], [], [rng.choice([*NUMBERS, "nil", "'2'", "{}"])]])
        return name, [f'"{form}"', quoted(data), *place]

    def _bit(self) -> tuple[str, list[str]]:
        rng = self._rng
        arguments = [rng.choice([rng.choice(NUMBERS), rng.choice(NUMBERS), rng.choice(WORDS)])
                     for _ in range(rng.randrange(1, 4))]  # fmt: skip
        return rng.choice(FUNCTIONS["bit"]), arguments
