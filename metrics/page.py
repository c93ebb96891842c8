"""The page that is scraped: samples by family, in the text format or in that of OpenMetrics.

The families are those of ``families.txt``, the table beside this module, which says how it is read.

prometheus_client chooses the format, writes the head of each family and writes labels. It takes 4
to 8 us for a sample (measured with 10,000 of one family), which would be 0.2 s for 1,000 streams
with a group each, most of it for writing the same labels again. So labels are written once for a
stream or a group, and a sample is put together from name, labels and number: 0.3 us.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final

from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

LINES: Final = 1000  # that are joined to one piece of the page
_END: Final = b"# EOF\n"  # of a page of OpenMetrics
_SAMPLE: Final = "x"


class Family:
    """One row of the table; ``source`` is where the value comes from, empty where code says so.

    Samples of a counter, and those of a family without more than one kind, have its name.
    """

    def __init__(self, name: str, kind: str, source: str, doc: str) -> None:
        self.name: Final = name
        self.kind: Final = kind
        self.source: Final = source
        self.doc: Final = doc

    def metric(self) -> Metric:
        """Return the family as prometheus_client knows it, without samples."""
        return Metric(self.name.removesuffix("_total"), self.doc, self.kind)


def read_table(text: str) -> dict[str, list[Family]]:
    """Return the families by section, each in its order."""
    sections: dict[str, list[Family]] = {}
    rows: list[Family] = []
    for line in text.splitlines():
        if line.startswith("["):
            rows = sections[line[1:-1]] = []
        elif line and not line.startswith("#"):
            words, _, doc = line.partition(" | ")
            name, kind, *more = words.split()
            source = "".join(more)
            rows.append(Family(name, kind, source, doc or f"The field {source} of INFO."))
    return sections


SECTIONS: Final = read_table(Path(__file__).with_name("families.txt").read_text("utf-8"))


class _One(Collector):
    """A registry that holds one family."""

    def __init__(self, metric: Metric) -> None:
        self._metric: Final = metric

    def collect(self) -> Iterable[Metric]:
        return [self._metric]


class Page:
    """One page; ``accept`` is what the header of that name asks for.

    Attributes:
        content_type: of the format that was chosen.
    """

    def __init__(self, accept: str) -> None:
        chosen = choose_encoder(accept)
        self._encode: Final[Callable[[Collector], bytes]] = chosen[0]
        self.content_type: Final[str] = chosen[1]
        self._samples: Final[dict[str, list[str]]] = {}
        self._end: Final = _END if self._head(Metric(_SAMPLE, "", "gauge")).endswith(_END) else b""
        self._before: Final = len(self._head(Metric(_SAMPLE, "", "gauge"))) - len(self._end)

    def _head(self, metric: Metric) -> bytes:
        return self._encode(_One(metric))

    def labels(self, **values: str) -> str:
        """Return labels as a sample has them behind its name."""
        metric = Metric(_SAMPLE, "", "gauge")
        metric.add_sample(_SAMPLE, values, 0)
        line = self._head(metric)[self._before :].removesuffix(self._end).decode()
        return line[len(_SAMPLE) : line.rindex(" ")]

    def add(self, name: str, labels: str, value: float) -> None:
        """Add a sample; ``labels`` may be empty."""
        self.lines(name).append(f"{name}{labels} {value!r}\n")

    def lines(self, name: str) -> list[str]:
        """Return the samples of a family, to which lines may be added."""
        found = self._samples.get(name)
        if found is None:
            found = self._samples[name] = []
        return found

    def add_histogram(
        self, name: str, labels: str, pairs: list[tuple[float, int]], count: int, total: float
    ) -> None:
        """Add a histogram.

        Args:
            pairs: (upper end, how many are not above it), in rising order.
            count: how many there are; total: their sum.
        """
        lines = self.lines(name)
        before = f"{labels[:-1]}," if labels else "{"
        for end, under in pairs:
            lines.append(f'{name}_bucket{before}le="{end!r}"}} {under}\n')
        lines.append(f'{name}_bucket{before}le="+Inf"}} {count}\n')
        lines.append(f"{name}_sum{labels} {total!r}\n")
        lines.append(f"{name}_count{labels} {count}\n")

    def pieces(self) -> Iterator[bytes]:
        """Return the page in pieces of some hundred kB at the most, families that have samples."""
        for family in FAMILIES:
            lines = self._samples.pop(family.name, None)
            if lines is None:
                continue
            yield self._head(family.metric()).removesuffix(self._end)
            for start in range(0, len(lines), LINES):
                yield "".join(lines[start : start + LINES]).encode()
        if self._end:
            yield self._end


FAMILIES: Final = [family for section in SECTIONS.values() for family in section]
