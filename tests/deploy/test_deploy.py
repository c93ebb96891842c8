"""deploy/: what its files name is there, and Prometheus's own tool plays the alerts."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from support import metrics

pytest.importorskip("prometheus_client", reason="only with the extra `metrics`")

from headrace.metrics.page import FAMILIES
from headrace.server.config.parameters import BY_NAME

DEPLOY = Path(__file__).parents[2] / "deploy"
OF_A_HISTOGRAM = ("_bucket", "_sum", "_count")
FROM_PROMETHEUS = {"up"}


def told() -> set[str]:
    """The names of all samples that there can be."""
    names = set()
    for family in FAMILIES:
        if family.kind == "histogram":
            names |= {family.name + suffix for suffix in OF_A_HISTOGRAM}
        else:
            names.add(family.name)
    return names


def named(expression: str) -> set[str]:
    """The metrics that an expression names."""
    bare = re.sub(r"\{[^}]*\}|\[[^]]*\]|\"[^\"]*\"|by \([^)]*\)", " ", expression)
    return {
        word
        for word in re.findall(r"\b[a-z][a-z0-9_]*\b(?!\s*\()", bare)
        if "_" in word or word == "up"
    }


def expressions_of_the_dashboard() -> list[str]:
    dashboard = json.loads((DEPLOY / "grafana-dashboard.json").read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    for variable in dashboard["templating"]["list"]:
        query = variable["query"]
        if isinstance(query, dict):
            asked += re.findall(r"label_values\((.*),", query["query"])
    return asked


def expressions_of_the_rules() -> list[str]:
    text = (DEPLOY / "alerts.yml").read_text().replace("\n          ", " ")
    return re.findall(r"expr: (?:>- *)?(.*)", text)


@pytest.mark.parametrize(
    "expression", [*expressions_of_the_dashboard(), *expressions_of_the_rules()]
)
def test_every_name_is_there(expression: str) -> None:
    names = named(expression)
    assert names, expression
    assert names - told() - FROM_PROMETHEUS == set()


def test_a_name_that_is_not_there_is_found() -> None:
    assert named('rate(redis_nothing_total{a="b"}[5m]) > 0') == {"redis_nothing_total"}
    assert "redis_nothing_total" not in told()


@pytest.mark.skipif(metrics.PROMTOOL is None, reason="no promtool here (apt install prometheus)")
@pytest.mark.parametrize(
    "words",
    ["check config prometheus.yml", "check rules alerts.yml", "test rules alerts_test.yml"],
)
def test_as_promtool_says(words: str) -> None:
    assert metrics.PROMTOOL is not None
    ran = subprocess.run(
        [metrics.PROMTOOL, *words.split()],
        cwd=DEPLOY,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize("file", ["compose.yaml", "kubernetes.yaml", "headrace.service"])
def test_options_are_parameters(file: str) -> None:
    options = re.findall(r"--([a-z][a-z-]*)", (DEPLOY / file).read_text())
    assert "metrics-port" in options
    assert [option for option in options if option.encode() not in BY_NAME] == []


def test_the_page_names_all_files() -> None:
    page = (DEPLOY / "README.md").read_text()
    assert [path.name for path in DEPLOY.iterdir() if f"`{path.name}`" not in page] == ["README.md"]


@pytest.mark.parametrize("file", ["compose.yaml", "kubernetes.yaml"])
def test_it_is_yaml(file: str) -> None:
    yaml = pytest.importorskip("yaml", reason="no PyYAML here")
    documents = list(yaml.safe_load_all((DEPLOY / file).read_text()))
    assert all(documents)
    if file == "kubernetes.yaml":
        assert [each["kind"] for each in documents] == ["Service", "StatefulSet"]
        (container,) = documents[1]["spec"]["template"]["spec"]["containers"]
        assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)
