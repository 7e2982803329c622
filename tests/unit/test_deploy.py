"""Files for deployment, containers and code hosts: what they name is there, and their tools accept them."""

import json
import re
import shlex
import shutil
import subprocess
import sysconfig
import tomllib
from pathlib import Path

import pytest
import yaml

from decima.connect.service.metrics import ServiceMetrics
from tests.services import sessions_of
from tests.unit.commands.calls import refuse, run

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TOKEN = "0123456789abcdef"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def read(name):
    return yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8"))


def objects():
    """Objects of the Kubernetes manifest by kind."""
    documents = list(yaml.safe_load_all((DEPLOY / "kubernetes" / "decima.yaml").read_text(encoding="utf-8")))
    assert len({each["kind"] for each in documents}) == len(documents)
    return {each["kind"]: each for each in documents}


@pytest.fixture(scope="module")
def metrics():
    """Names of all samples that the service may give, those of histograms included."""
    names = set()
    for family in ServiceMetrics(sessions_of("fair")).registry.collect():
        ending = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"]}.get(family.type, [""])
        names |= {family.name + end for end in ending}
    return names | {"up"}


def check_expression(text, metrics):
    """A PromQL expression: its metrics exist, and its brackets are closed."""
    bare = re.sub(r'"[^"]*"', '""', text)
    named = set(re.findall(r"\b(?:decima|process)_\w+|\bup\b", bare))
    assert named, text
    assert named <= metrics, named - metrics
    for left, right in ("()", "{}", "[]"):
        assert bare.count(left) == bare.count(right), text
    assert set(re.findall(r"\[(\w+)\]", bare)) <= {"1m", "5m", "10m", "15m", "1h"}


def test_the_configurations_are_right(monkeypatch, tmp_path):
    """That of compose and systemd, and that of the Kubernetes manifest, which differs by the file of the token."""
    manifest = objects()["ConfigMap"]["data"]["decima.toml"]
    here, there = tomllib.loads((DEPLOY / "decima.toml").read_text()), tomllib.loads(manifest)
    assert there.pop("token-file") == "/etc/decima-token/token"
    assert there == here
    assert "give a token" in refuse("serve", "--check", "--config", DEPLOY / "decima.toml")
    monkeypatch.setenv("DECIMA_SERVICE_TOKEN", TOKEN)
    result = run("serve", "--check", "--config", DEPLOY / "decima.toml", "--scheduler", "fair", "--also", "fifo")
    assert result.exit_code == 0
    assert result.stdout == "the options are right: fair, fifo at 0.0.0.0:50051\n"
    assert result.stderr.startswith("warning: token and jobs travel unencrypted")


def test_compose_builds_and_mounts_what_is_there():
    services = read("compose.yaml")["services"]
    for service in services.values():
        assert ("build" in service) or re.fullmatch(r"[\w/-]+:v?\d+\.\d+\.\d+", service["image"])
        for volume in service.get("volumes", ()):
            assert (DEPLOY / volume.split(":")[0]).exists(), volume
        assert set(service.get("depends_on", ())) <= set(services)
    decima = services["decima"]
    assert (DEPLOY / decima["build"] / "Dockerfile").is_file()
    assert decima["command"] == ["serve", "--config", decima["volumes"][0].split(":")[1]]
    port = tomllib.loads((DEPLOY / "decima.toml").read_text())["metrics-port"]
    assert f"127.0.0.1:{port}/readyz" in decima["healthcheck"]["test"][-1]
    compile(decima["healthcheck"]["test"][-1], "healthcheck", "exec")
    assert f"decima:{port}" in read("prometheus/prometheus.yml")["scrape_configs"][0]["static_configs"][0]["targets"]


def test_alerts_ask_for_metrics_that_are_there(metrics):
    (group,) = read("prometheus/alerts.yml")["groups"]
    assert len({rule["alert"] for rule in group["rules"]}) == len(group["rules"]) >= 5
    for rule in group["rules"]:
        assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
        check_expression(rule["expr"], metrics)
        assert rule["labels"]["severity"] in ("warning", "critical")
        assert "{{ $labels.instance }}" in rule["annotations"]["summary"]
        assert re.fullmatch(r"\d+[sm]", rule.get("for", "1m"))
    assert read("prometheus/prometheus.yml")["rule_files"] == ["alerts.yml"]


def test_the_dashboard_asks_for_metrics_that_are_there(metrics):
    board = json.loads((DEPLOY / "grafana" / "decima.json").read_text())
    source = read("grafana/datasource.yaml")["datasources"][0]["uid"]
    cells = set()
    for panel in board["panels"]:
        at = panel["gridPos"]
        own = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not own & cells
        cells |= own
        assert max(x for x, _ in own) < 24
        for target in panel["targets"]:
            assert target["datasource"]["uid"] == source
            check_expression(target["expr"], metrics)
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    folder = read("grafana/dashboards.yaml")["providers"][0]["options"]["path"]
    assert any(
        volume.split(":")[1].startswith(folder) for volume in read("compose.yaml")["services"]["grafana"]["volumes"]
    )


def test_the_manifest_fits_together():
    """Two replicas with probes at paths and ports that there are; every selector, name and volume leads somewhere."""
    kinds = objects()
    versions = {kind: each["apiVersion"] for kind, each in kinds.items()}
    assert versions == {
        "ConfigMap": "v1",
        "Deployment": "apps/v1",
        "Service": "v1",
        "PodDisruptionBudget": "policy/v1",
        "PodMonitor": "monitoring.coreos.com/v1",
    }
    deployment = kinds["Deployment"]["spec"]
    pod, labels = deployment["template"]["spec"], deployment["template"]["metadata"]["labels"]
    assert deployment["replicas"] == 2
    assert deployment["selector"]["matchLabels"] == labels == kinds["Service"]["spec"]["selector"]
    assert kinds["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"] == labels
    assert kinds["PodMonitor"]["spec"]["selector"]["matchLabels"] == labels
    (container,) = pod["containers"]
    told = tomllib.loads(kinds["ConfigMap"]["data"]["decima.toml"])
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    assert ports == {"grpc": told["port"], "metrics": told["metrics-port"]}
    for name, path in (("startup", "/readyz"), ("readiness", "/readyz"), ("liveness", "/healthz")):
        assert container[f"{name}Probe"]["httpGet"] == {"path": path, "port": "metrics"}
    assert {each["port"] for each in kinds["PodMonitor"]["spec"]["podMetricsEndpoints"]} == {"metrics"}
    assert {each["targetPort"] for each in kinds["Service"]["spec"]["ports"]} == {"grpc"}
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert set(mounts) == set(volumes)
    assert volumes["configuration"]["configMap"]["name"] == kinds["ConfigMap"]["metadata"]["name"]
    assert container["args"] == ["serve", "--config", f"{mounts['configuration']}/decima.toml"]
    assert told["token-file"].startswith(mounts["token"] + "/")
    assert pod["securityContext"]["runAsUser"] == int(re.search(r"--uid (\d+)", (ROOT / "Dockerfile").read_text())[1])
    # Kubernetes would set DECIMA_SERVICE_PORT to a URL otherwise; no option is read from such a name either.
    assert pod["enableServiceLinks"] is False


def needs(tool):
    return pytest.mark.skipif(shutil.which(tool) is None, reason=f"{tool} is not installed")


def check_with(tool, *arguments):
    """Exit code of a tool, and what it says."""
    done = subprocess.run([tool, *arguments], capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr


@needs("promtool")
def test_prometheus_accepts_its_configuration_and_rules(tmp_path):
    shutil.copytree(DEPLOY / "prometheus", tmp_path, dirs_exist_ok=True)
    code, said = check_with("promtool", "check", "config", tmp_path / "prometheus.yml")
    assert (code, said.count("SUCCESS")) == (0, 3), said  # the file, the rules it names, and these again
    rules = tmp_path / "alerts.yml"
    rules.write_text(rules.read_text().replace("expr: ", "expr: rate(", 1))
    assert check_with("promtool", "check", "config", tmp_path / "prometheus.yml")[0] != 0


@needs("kubernetes-validate")
def test_the_manifest_follows_the_schemas_of_kubernetes(tmp_path):
    """Strictly: a field that no schema has is refused."""
    text = (DEPLOY / "kubernetes" / "decima.yaml").read_text(encoding="utf-8")
    manifest = tmp_path / "decima.yaml"
    manifest.write_text(text)
    code, said = check_with("kubernetes-validate", "--strict", manifest)
    assert (code, said.count(" passed for resource ")) == (0, 4), said  # the fifth is of the Prometheus operator
    manifest.write_text(text.replace("replicas: 2", "replica: 2"))
    assert check_with("kubernetes-validate", "--strict", manifest)[0] != 0


@needs("systemd-analyze")
def test_systemd_accepts_the_unit(tmp_path):
    text = (DEPLOY / "systemd" / "decima.service").read_text()
    words = set(
        re.findall(r"(?<= )--[\w-]+", "".join(line for line in text.splitlines(True) if line.startswith("Exec")))
    )
    known = {option for option in words if option in run("serve", "--help").stdout}
    assert words == known == {"--check", "--config", "--token-file"}
    program = Path(sysconfig.get_path("scripts")) / "decima"
    unit = tmp_path / "decima.service"
    unit.write_text(text.replace("/opt/decima/bin/decima", str(program)))
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert (checked.returncode, checked.stderr) == (0, ""), checked
    unit.write_text(unit.read_text().replace("Type=exec", "Typo=exec"))
    assert "Typo" in subprocess.run(command, capture_output=True, text=True, timeout=600).stderr


def test_the_unit_says_how_its_token_is_renewed():
    """What systemd hands over at the start is the same at every reload, so that a reload is not the way."""
    text = (DEPLOY / "systemd" / "decima.service").read_text()
    if "LoadCredential=token:" in text:
        comment = " ".join(line.removeprefix("#").strip() for line in text.splitlines() if line.startswith("#"))
        assert "The token: systemctl restart decima" in comment
        assert "a new token needs `systemctl restart`" in (ROOT / "docs" / "service.md").read_text()


# ---- code hosts and containers ---------------------------------------------------------------------------------------


def jobs_of(path):
    return yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"]


def check_command(line):
    """A command line of the project: its verb exists and its options are known."""
    assert run(*shlex.split(line)[1:], "--help").exit_code == 0, line


def instructions(path):
    """Instruction and rest of each line of a Dockerfile."""
    text = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE))
    return [tuple(line.split(maxsplit=1)) for line in text.splitlines() if line]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_has_what_its_host_asks_for(path):
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", True, "permissions", "jobs"} <= set(content)  # YAML reads the key `on` as true
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for job in content["jobs"].values():
        assert job["runs-on"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)
            assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "actions/checkout@v4"))
            if step.get("run", "").startswith("make "):
                assert step["run"].split()[1] in targets


def test_every_python_of_the_classifiers_is_tried():
    tried = jobs_of(ROOT / ".github" / "workflows" / "tests.yml")["light"]["strategy"]["matrix"]["python-version"]
    assert tried == [text.rpartition(" ")[2] for text in PROJECT["classifiers"] if "Python :: 3." in text]


def test_commands_of_the_test_workflow_exist():
    steps = jobs_of(ROOT / ".github" / "workflows" / "tests.yml")["light"]["steps"]
    commands = [step["run"] for step in steps if step.get("run", "").startswith("decima ")]
    assert len(commands) >= 4
    for line in commands:
        check_command(line)


def test_the_image_is_slim_runs_without_root_and_copies_what_is_there():
    lines = instructions(ROOT / "Dockerfile")
    kinds = [kind for kind, _ in lines]
    assert set(kinds) <= {"FROM", "WORKDIR", "COPY", "RUN", "ENV", "USER", "EXPOSE", "ENTRYPOINT", "CMD"}
    values = dict(lines)
    assert values["FROM"] == "python:3.11-slim"
    assert values["USER"] not in ("root", "0")
    assert kinds.index("USER") > max(index for index, kind in enumerate(kinds) if kind == "COPY")
    assert json.loads(values["ENTRYPOINT"]) == ["decima"]
    ignored, commands = (ROOT / ".dockerignore").read_text().splitlines(), []
    for kind, rest in lines:
        if kind == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists()
                assert f"!{source}" in ignored
        for step in rest.split(" && ") if kind == "RUN" else ():
            if step.startswith("decima "):
                check_command(step)
                commands.append(step)
    assert len(commands) == 2
    (extra,) = re.findall(r'"\.\[(\w+)\]"', (ROOT / "Dockerfile").read_text())
    assert extra in PROJECT["optional-dependencies"]


def test_the_development_container_builds_the_environment():
    content = json.loads((ROOT / ".devcontainer" / "devcontainer.json").read_text())
    assert content["postCreateCommand"] == "make env"
    assert content["image"].endswith(f":{PROJECT['requires-python'].removeprefix('>=')}")
