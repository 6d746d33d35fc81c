"""The files in `deploy/` fit the project: users, ports, commands, probes and settings."""

import inspect
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from langgraph_runtime_sql.database.postgres.engine import READERS, SEARCHERS, URGENT, WRITERS
from my_agent.chat.settings import ChatSettings
from my_agent.icp_finder.settings import IcpSettings
from my_agent.models import ModelSettings
from my_agent.research.settings import ResearchSettings
from my_agent.tutor.settings import TutorSettings
from server.cli import main
from server.settings import Settings
from tests.support.processes import ROOT, running
from tests.unit.repository.test_monitoring import problems
from threadhold.cli.dockerfile import render
from threadhold.config_file import read_config
from threadhold.serving import heartbeat
from threadhold.settings import variable
from tools.web import BUILD as BUILT_PAGE
from tools.web import NODE

DEPLOY = ROOT / "deploy"
DOCS = ROOT / "docs"
# What is promised about connections, and every variable that is explained.
README = "".join(
    (DOCS / page).read_text()
    for page in ("how-to/deploy.md", "how-to/postgres.md", "reference/settings.md")
)
PORT = 8123
# The health check that tests use as well.
PROBE = str(inspect.signature(running).parameters["ready"].default)
# A shutdown has two grace periods: first for requests, then for runs.
GRACES = 2
# Variables of Python, of a shell, and of third-party images.
FOREIGN = {
    "image": {"PATH", "HOME", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"},
    "db": {"POSTGRES_PASSWORD", "THREADHOLD_PASSWORD"},
    "cache": {"REDISCLI_AUTH"},
}


def known_settings() -> set[str]:
    """Every variable that the project, or langgraph_api in it, reads and the documentation explains."""
    names = {variable(Settings, name) for name in Settings.model_fields}
    for settings in (ModelSettings, ChatSettings, IcpSettings, ResearchSettings, TutorSettings):
        names |= {f"{settings.PREFIX}{name}".upper() for name in settings.model_fields}
    return names | set(re.findall(r"`([A-Z]+(?:_[A-Z]+)+)`", README))


def check_settings(environment: dict[str, str]) -> Settings:
    """Check that each variable is a setting and the server accepts its own values."""
    assert environment.keys() <= known_settings(), environment.keys() - known_settings()
    with pytest.MonkeyPatch.context() as patch:
        for name in Settings.model_fields:
            patch.delenv(variable(Settings, name), raising=False)
        for name, value in environment.items():
            patch.setenv(name, value)
        return Settings(_env_file=None)


def check_command(arguments: list[str]) -> None:
    """The app's command line takes these arguments."""
    name, *rest = arguments
    main.commands[name].make_context(name, list(rest))


def check_heartbeat(
    arguments: list[str], probe: list[str], folders: list[str], tmp_path: Path
) -> None:
    """Check that the probe tests the age of the heartbeat file in a writable folder."""
    path = arguments[arguments.index("--heartbeat") + 1]
    assert str(Path(path).parent) in folders
    assert probe[0] == "python"
    here = tmp_path / "heartbeat"
    here.unlink(missing_ok=True)
    asked = [sys.executable, *(word.replace(path, str(here)) for word in probe[1:])]
    assert str(here) in asked[-1]

    def answer() -> int:
        return subprocess.run(asked, stderr=subprocess.DEVNULL, check=False).returncode

    assert answer() != 0
    here.touch()
    assert answer() == 0
    # A single late heartbeat must not fail the probe: the machine may be busy.
    for age, alive in ((4 * heartbeat.SECONDS, True), (3600, False)):
        os.utime(here, (time.time() - age,) * 2)
        assert (answer() == 0) is alive


def grace(environment: dict[str, str]) -> float:
    return float(environment["SHUTDOWN_GRACE_SECONDS"])


# Connections to Postgres per process: those of its threads, the one that holds the
# ownership of the database, and two for messages between processes.
PER_PROCESS = READERS + SEARCHERS + WRITERS + URGENT + 3
# Connections that are kept for superusers, monitoring and backups.
OTHERS = 20


def promised(text: str) -> list[int]:
    """Return every `max_connections` number in a text."""
    return [int(number) for number in re.findall(r"max_connections=(\d+)", text)]


# --- the image ---


class Instruction(NamedTuple):
    """One instruction of a Dockerfile."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """The arguments in shell or JSON form, without flags."""
        if self.text.startswith("["):
            found: list[str] = json.loads(self.text)
            return found
        return [word for word in shlex.split(self.text) if not word.startswith("--")]

    @property
    def flags(self) -> dict[str, str]:
        found = (word for word in self.text.split() if word.startswith("--"))
        return dict(word[2:].split("=", 1) for word in found)


def dockerfile() -> list[list[Instruction]]:
    """Parse the Dockerfile into the instructions of each stage."""
    lines = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    stages: list[list[Instruction]] = []
    for line in lines:
        if line.strip() and not line.startswith("#"):
            name, _, text = line.partition(" ")
            if name == "FROM":
                stages.append([])
            stages[-1].append(Instruction(name, text.strip()))
    return stages


WEB, BUILD, IMAGE = dockerfile()


def only(name: str, stage: list[Instruction] = IMAGE) -> Instruction:
    [found] = [each for each in stage if each.name == name]
    return found


def ignored(path: str) -> bool:
    """Return whether `.dockerignore` excludes a path: the last matching rule decides."""
    out = False
    for line in (ROOT / ".dockerignore").read_text().splitlines():
        rule = line.strip()
        if rule and not rule.startswith("#"):
            pattern = rule.lstrip("!")
            if any(_fits(each, pattern) for each in (path, *map(str, Path(path).parents))):
                out = not rule.startswith("!")
    return out


def _fits(path: str, pattern: str) -> bool:
    if pattern.startswith("**/"):
        return fnmatch(path.rpartition("/")[2], pattern[3:])
    return path != "." and fnmatch(path, pattern) and path.count("/") == pattern.count("/")


def image_settings() -> dict[str, str]:
    pairs = (pair for each in IMAGE if each.name == "ENV" for pair in each.words)
    return dict(pair.split("=", 1) for pair in pairs)


def user() -> int:
    number, _, group = only("USER").text.partition(":")
    assert number == group
    return int(number)


def test_copied_files_exist_and_are_not_ignored() -> None:
    copied = [each for each in (*WEB, *BUILD) if each.name == "COPY" and "from" not in each.flags]
    names = {name for each in copied for name in each.words[:-1]}
    for name in names:
        assert (ROOT / name).exists(), name
        assert not ignored(name), name
    # Every package of the project, and the files it is installed from.
    for package in ROOT.glob("*/__init__.py"):
        assert (package.parent.name in names) is (package.parent.name not in ("bench", "tests"))
    assert {"pyproject.toml", "setup.py", "requirements.lock", "README.md", "LICENSE"} <= names


@pytest.mark.parametrize(
    "path",
    [
        *(".env", "my_agent/.env", "deploy/.env", ".git", ".venv", "data", "data/threadhold.db"),
        *("server/__pycache__", "server/routes/__pycache__/a.pyc", "tests", "bench", "deploy"),
        *("web/node_modules", "threadhold/web/index.html"),
    ],
)
def test_private_and_generated_files_are_ignored(path: str) -> None:
    assert ignored(path)


def test_no_installed_file_is_ignored() -> None:
    for package in (
        "threadhold",
        "langgraph_runtime_sql",
        "hooks",
        "my_agent",
        "server",
    ):
        for path in (ROOT / package).rglob("*"):
            # The image builds the page itself.
            if path.is_relative_to(ROOT / "threadhold" / "web"):
                continue
            if path.is_file() and "__pycache__" not in path.parts and path.name != ".env":
                assert not ignored(str(path.relative_to(ROOT))), path


def test_image_contains_the_files_of_the_graphs() -> None:
    project = json.loads((ROOT / "langgraph.json").read_text())
    for graph in project["graphs"].values():
        assert not ignored(graph["path"].partition(":")[0].removeprefix("./"))
    assert only("WORKDIR").text == only("WORKDIR", BUILD).text == "/app"


def test_all_stages_use_one_supported_python() -> None:
    names = [only("FROM", stage).words[0] for stage in (BUILD, IMAGE)]
    assert len(set(names)) == 1
    version = re.fullmatch(r"python:3\.(\d+)-slim", names[0])
    assert version and int(version[1]) >= 11
    sources = {each.flags["from"] for each in IMAGE if each.name == "COPY"}
    assert sources == {only("FROM", BUILD).words[-1]}


def test_image_builds_the_page_into_the_place_where_it_is_served() -> None:
    assert int(re.findall(r"node:(\d+)-slim", only("FROM", WEB).text)[0]) >= NODE
    [build] = [each.words for each in WEB if each.name == "RUN" and "build" in each.words]
    [copied] = [each for each in BUILD if each.name == "COPY" and "from" in each.flags]
    assert copied.flags["from"] == only("FROM", WEB).words[-1]
    assert copied.words == [build[build.index("--outDir") + 1], "./threadhold/web"]
    assert (ROOT / "threadhold" / "web") == BUILT_PAGE


def test_image_installs_only_locked_packages() -> None:
    installs = [each.words for each in BUILD if each.name == "RUN" and "install" in each.words]
    assert len(installs) == 2
    assert {"--require-hashes", "--no-deps", "requirements.lock"} <= set(installs[0])
    assert {"--no-deps", "--no-build-isolation"} <= set(installs[1])


def test_image_runs_unprivileged_and_receives_signals() -> None:
    [commands] = [each.text for each in IMAGE if each.name == "RUN" and "useradd" in each.text]
    made = re.findall(r"--[ug]id (\d+)", commands)
    assert made and set(made) == {str(user())}
    assert user() > 0
    last = [each.name for each in IMAGE]
    assert last.index("USER") < last.index("ENTRYPOINT")
    assert only("ENTRYPOINT").text.startswith("[")
    assert only("CMD").text.startswith("[")


def test_image_has_the_programs_for_backups_of_its_postgres() -> None:
    """`pg_dump` refuses servers that are newer than itself."""
    [installed] = [each.text for each in IMAGE if "postgresql-client" in each.text]
    [version] = re.findall(r"postgresql-client-(\d+)", installed)
    # Debian has older ones only.
    assert installed.index("apt.postgresql.org.sh -y") < installed.index("postgresql-client-")
    # Debian's wrappers in /usr/bin would choose a version themselves.
    assert f"/usr/lib/postgresql/{version}/bin" in image_settings()["PATH"].split(":")
    [served] = re.findall(r":pg(\d+)$", SERVICES["db"]["image"])
    assert int(version) >= int(served)
    # `threadhold dockerfile` prints the same.
    printed = render(read_config(ROOT / "langgraph.json"), {}, "==1.0").replace("\\\n", " ")
    assert installed in [line.removeprefix("RUN ") for line in printed.splitlines()]
    assert f"ENV PATH=/usr/lib/postgresql/{version}/bin:$PATH" in printed
    assert printed.index("postgresql-client-") < printed.index("USER ")


def test_image_serves_on_its_exposed_port() -> None:
    assert only("ENTRYPOINT").words == ["python", "-m", "server"]
    arguments = only("CMD").words
    check_command(arguments)
    assert arguments[arguments.index("--port") + 1] == only("EXPOSE").text == str(PORT)
    assert arguments[arguments.index("--host") + 1] == "0.0.0.0"
    check = only("HEALTHCHECK").text
    assert check.partition("CMD ")[2].startswith("[")
    assert f"http://127.0.0.1:{PORT}{PROBE}'" in check


def test_image_variables_are_settings() -> None:
    environment = image_settings()
    assert FOREIGN["image"] <= environment.keys()
    check_settings({k: v for k, v in environment.items() if k not in FOREIGN["image"]})
    # The image is reached from outside, so requests must not count as the developer's.
    assert environment["APP_ENV"] == "production"


# --- compose ---

COMPOSE: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
OURS = ("app", "worker", "migrate")
EXAMPLE = dict(
    line.split("=", 1)
    for line in (DEPLOY / "example.env").read_text().splitlines()
    if line and not line.startswith("#")
)


def filled(value: str) -> str:
    """Fill the `${NAME...}` parts of a value as `deploy/.env` does."""
    return re.sub(
        r"\$\{(\w+)[^}]*\}", lambda found: f"{found[1].lower()}-of-thirty-two-bytes-or-more", value
    )


def seconds(duration: str) -> float:
    assert duration.endswith("s")
    return float(duration[:-1])


@pytest.mark.parametrize("name", OURS)
def test_compose_service_is_valid_and_hardened(name: str) -> None:
    service = SERVICES[name]
    build = service["build"]
    assert (DEPLOY / build["context"]).resolve() == ROOT
    assert (ROOT / build["dockerfile"]).is_file()
    check_command(service.get("command") or only("CMD").words)
    environment = {key: filled(value) for key, value in service["environment"].items()}
    check_settings(environment)
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "/tmp" in service["tmpfs"]
    assert seconds(service["stop_grace_period"]) > GRACES * grace(environment)


def test_compose_services_find_each_other() -> None:
    for service in SERVICES.values():
        for name, wanted in service.get("depends_on", {}).items():
            if wanted["condition"] == "service_healthy":
                assert "test" in SERVICES[name]["healthcheck"], name
            else:
                assert wanted["condition"] == "service_completed_successfully"
                assert SERVICES[name]["restart"] != "unless-stopped", name
    settings = check_settings(
        {name: filled(value) for name, value in SERVICES["app"]["environment"].items()}
    )
    assert re.match(r"postgresql://threadhold:[^@]+@db:5432/threadhold$", settings.database_url)
    assert re.match(r"redis://:[^@]+@cache:6379/0$", settings.redis_url or "")


def test_redis_needs_a_password() -> None:
    cache = SERVICES["cache"]
    assert cache["command"][cache["command"].index("--requirepass") + 1].startswith(
        "${REDIS_PASSWORD"
    )
    assert set(cache["environment"]) == FOREIGN["cache"]
    assert "ports" not in cache
    # In a cluster, with TLS.
    assert re.match(r"rediss://:[^@]+@", SECRET["REDIS_URL"])


def test_network_policies_open_only_the_ports_of_api_and_metrics() -> None:
    everything = OBJECTS["NetworkPolicy", "threadhold"]["spec"]
    assert everything["podSelector"]["matchLabels"] == {"app.kubernetes.io/name": "threadhold"}
    assert everything["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in everything
    assert all(rule["ports"] for rule in everything["egress"])
    api = OBJECTS["NetworkPolicy", "threadhold-api"]["spec"]
    assert api["podSelector"]["matchLabels"] == labels(("Deployment", "threadhold-api"))
    [port] = container(("Deployment", "threadhold-api"))["ports"]
    assert [each["port"] for rule in api["ingress"] for each in rule["ports"]] == [port["name"]]
    worker = OBJECTS["NetworkPolicy", "threadhold-worker"]["spec"]
    assert worker["podSelector"]["matchLabels"] == labels(("Deployment", "threadhold-worker"))
    [rule] = worker["ingress"]
    [port] = container(("Deployment", "threadhold-worker"))["ports"]
    assert [each["port"] for each in rule["ports"]] == [port["name"]]
    # Everybody may reach the API, only Prometheus the metrics.
    assert rule["from"]


def test_compose_publishes_one_port_per_server() -> None:
    app = SERVICES["app"]
    [(outside, inside)] = [port.rsplit(":", 1) for port in app["ports"]]
    first, last = outside.rpartition(":")[2].split("-")
    assert outside.startswith("127.0.0.1:")
    assert int(last) - int(first) + 1 == app["deploy"]["replicas"] == 2
    assert inside == str(PORT)
    # The app has the image's health check; `migrate` answers no requests.
    assert "healthcheck" not in app
    assert SERVICES["migrate"]["healthcheck"] == {"disable": True}


def test_compose_checks_the_heartbeat_of_the_worker(tmp_path: Path) -> None:
    kind, *command = SERVICES["worker"]["healthcheck"]["test"]
    assert kind == "CMD"
    check_heartbeat(SERVICES["worker"]["command"], command, SERVICES["worker"]["tmpfs"], tmp_path)


def test_every_compose_variable_is_in_the_example() -> None:
    asked = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    assert asked == EXAMPLE.keys()
    # Secrets have no example value that could be kept by mistake.
    assert set(EXAMPLE.values()) == {""}
    assert set(SERVICES["db"]["environment"]) == FOREIGN["db"]


def test_compose_database_allows_enough_connections() -> None:
    processes = sum(SERVICES[name].get("deploy", {}).get("replicas", 1) for name in OURS)
    [allowed] = promised(" ".join(SERVICES["db"]["command"]))
    assert allowed >= processes * PER_PROCESS + OTHERS
    assert allowed in promised(README)


def test_compose_files_and_volumes_exist() -> None:
    for service in SERVICES.values():
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            assert (DEPLOY / source).is_file() if "/" in source else source in COMPOSE["volumes"]


def test_database_role_cannot_bypass_row_level_security() -> None:
    script = (DEPLOY / "postgres" / "init.sql").read_text()
    role = re.search(r"CREATE ROLE (\w+) (.*);", script)
    assert role and role[1] == "threadhold"
    assert {"LOGIN", "NOSUPERUSER", "NOBYPASSRLS"} <= set(role[2].split())
    assert (
        "CREATE DATABASE threadhold OWNER threadhold TEMPLATE template0 ENCODING 'UTF8'" in script
    )
    assert re.search(r"\\getenv password (\w+)", script)[1] in FOREIGN["db"]  # type: ignore[index]


# --- Kubernetes ---


def manifests() -> Iterator[dict[str, Any]]:
    folder = DEPLOY / "kubernetes"
    listed = yaml.safe_load((folder / "kustomization.yaml").read_text())["resources"]
    files = {path.name for path in folder.glob("*.yaml")}
    # The example secret is not applied as it is.
    assert files - {"kustomization.yaml", "secret.example.yaml"} == set(listed)
    for name in (*listed, "secret.example.yaml"):
        yield from yaml.safe_load_all((folder / name).read_text())


OBJECTS = {(each["kind"], each["metadata"]["name"]): each for each in manifests()}
CONFIG: dict[str, str] = OBJECTS["ConfigMap", "threadhold"]["data"]
SECRET: dict[str, str] = OBJECTS["Secret", "threadhold"]["stringData"]
WORKLOADS = [key for key in OBJECTS if key[0] in ("Deployment", "Job")]
DEPLOYMENTS = [key for key in OBJECTS if key[0] == "Deployment"]


def pod(key: tuple[str, str]) -> dict[str, Any]:
    spec: dict[str, Any] = OBJECTS[key]["spec"]["template"]["spec"]
    return spec


def container(key: tuple[str, str]) -> dict[str, Any]:
    [found] = pod(key)["containers"]
    assert isinstance(found, dict)
    return found


def labels(key: tuple[str, str]) -> dict[str, str]:
    found: dict[str, str] = OBJECTS[key]["spec"]["template"]["metadata"]["labels"]
    return found


def environment(key: tuple[str, str]) -> dict[str, str]:
    own = {each["name"]: each["value"] for each in container(key).get("env", ())}
    return {**CONFIG, **SECRET, **own}


def test_kubernetes_has_every_needed_object() -> None:
    assert set(DEPLOYMENTS) == {
        ("Deployment", "threadhold-api"),
        ("Deployment", "threadhold-worker"),
    }
    assert ("Job", "threadhold-migrate") in OBJECTS
    for _, name in DEPLOYMENTS:
        assert {("HorizontalPodAutoscaler", name), ("PodDisruptionBudget", name)} <= OBJECTS.keys()


@pytest.mark.parametrize("key", WORKLOADS, ids=lambda key: key[1])
def test_kubernetes_workload_is_valid_and_hardened(key: tuple[str, str]) -> None:
    spec, runs = pod(key), container(key)
    check_command(runs["args"])
    check_settings(environment(key))
    sources = [(kind, ref["name"]) for each in runs["envFrom"] for kind, ref in each.items()]
    assert sources == [("configMapRef", "threadhold"), ("secretRef", "threadhold")]
    assert all(isinstance(value, str) for value in environment(key).values())
    allowed = spec["securityContext"]
    assert allowed["runAsNonRoot"] is True
    assert allowed["runAsUser"] == allowed["runAsGroup"] == user()
    confined = runs["securityContext"]
    assert confined["readOnlyRootFilesystem"] is True
    assert confined["allowPrivilegeEscalation"] is False
    assert confined["capabilities"] == {"drop": ["ALL"]}
    assert {mount["name"] for mount in runs["volumeMounts"]} == {v["name"] for v in spec["volumes"]}
    assert [mount["mountPath"] for mount in runs["volumeMounts"]] == [image_settings()["HOME"]]
    assert {"cpu", "memory"} <= runs["resources"]["requests"].keys()
    assert "memory" in runs["resources"]["limits"]
    assert runs["image"] == SERVICES["app"]["image"]


@pytest.mark.parametrize("key", DEPLOYMENTS, ids=lambda key: key[1])
def test_deployment_fits_its_autoscaler_and_budget(key: tuple[str, str]) -> None:
    name, spec = key[1], OBJECTS[key]["spec"]
    assert spec["selector"]["matchLabels"] == labels(key)
    # With a replica count here, each apply would undo the autoscaler's decision.
    assert "replicas" not in spec
    scaler = OBJECTS["HorizontalPodAutoscaler", name]["spec"]
    assert (scaler["scaleTargetRef"]["kind"], scaler["scaleTargetRef"]["name"]) == key
    budget = OBJECTS["PodDisruptionBudget", name]["spec"]
    assert budget["selector"]["matchLabels"] == labels(key)
    # With a single pod, a budget would prevent its node from being drained.
    assert scaler["minReplicas"] > budget["maxUnavailable"]
    before = container(key).get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command")
    pause = float(before[1]) if before else 0
    left = pod(key)["terminationGracePeriodSeconds"] - pause
    assert left > GRACES * grace(environment(key))


def test_api_probes_and_service_use_its_port() -> None:
    runs = container(("Deployment", "threadhold-api"))
    [port] = runs["ports"]
    arguments = runs["args"]
    assert arguments[arguments.index("--port") + 1] == str(port["containerPort"]) == str(PORT)
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        asked = runs[probe]["httpGet"]
        assert asked["path"].partition("?")[0] == PROBE
        assert asked["port"] == port["name"]
    service = OBJECTS["Service", "threadhold"]["spec"]
    assert service["selector"] == labels(("Deployment", "threadhold-api"))
    assert [each["targetPort"] for each in service["ports"]] == [port["name"]]


def test_worker_probes_check_the_heartbeat(tmp_path: Path) -> None:
    runs = container(("Deployment", "threadhold-worker"))
    folders = [mount["mountPath"] for mount in runs["volumeMounts"]]
    for probe in ("startupProbe", "livenessProbe"):
        check_heartbeat(runs["args"], runs[probe]["exec"]["command"], folders, tmp_path)
    # The worker removes an old heartbeat file at startup, so the startup probe waits for its own.
    assert runs["startupProbe"]["failureThreshold"] * runs["startupProbe"]["periodSeconds"] >= 120
    assert runs["livenessProbe"]["failureThreshold"] > 1


def test_api_runs_no_jobs_and_workers_open_only_their_metrics() -> None:
    api, worker = ("Deployment", "threadhold-api"), ("Deployment", "threadhold-worker")
    assert environment(api)["N_JOBS_PER_WORKER"] == "0"
    assert int(environment(worker)["N_JOBS_PER_WORKER"]) > 0
    assert container(worker)["args"][0] == "worker"
    [port] = container(worker)["ports"]
    arguments = container(worker)["args"]
    assert arguments[arguments.index("--metrics-port") + 1] == str(port["containerPort"])
    assert arguments[arguments.index("--metrics-host") + 1] == "0.0.0.0"
    # Without it, a worker refuses to show its metrics to other machines.
    assert len(SECRET["METRICS_TOKEN"]) >= 16
    assert labels(api) != labels(worker)


def test_prometheus_scrapes_every_process_with_the_token() -> None:
    monitor = yaml.safe_load((DEPLOY / "monitoring" / "podmonitor.yaml").read_text())["spec"]
    assert monitor["selector"]["matchLabels"].items() <= labels(DEPLOYMENTS[0]).items()
    ports = {port["name"] for key in DEPLOYMENTS for port in container(key)["ports"]}
    assert {each["port"] for each in monitor["podMetricsEndpoints"]} == ports
    for each in monitor["podMetricsEndpoints"]:
        credentials = each["authorization"]["credentials"]
        assert each["path"] == "/metrics"
        assert OBJECTS["Secret", credentials["name"]]["stringData"][credentials["key"]]
    # The job of the alerts.
    assert labels(DEPLOYMENTS[0])[monitor["jobLabel"]] == "threadhold"


def test_backups_are_made_every_day_and_an_old_one_alerts() -> None:
    spec = OBJECTS["CronJob", "threadhold-backup"]["spec"]
    [runs] = spec["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    shell, option, script = runs["command"]
    assert (shell, option) == ("sh", "-c")
    entry, (name, *arguments) = shlex.split(script)[1:4], shlex.split(script)[4:]
    assert entry == only("ENTRYPOINT").words
    check_command([name, *arguments])
    [folder] = {mount["mountPath"] for mount in runs["volumeMounts"]} - {"/tmp"}
    assert arguments[-1].startswith(f"{folder}/")
    assert runs["securityContext"] == container(DEPLOYMENTS[0])["securityContext"]
    assert spec["schedule"].split()[2:] == ["*", "*", "*"]
    rules = yaml.safe_load((DEPLOY / "monitoring" / "alerts.yaml").read_text())["groups"][0][
        "rules"
    ]
    [alert] = [rule for rule in rules if rule["alert"] == "ThreadholdBackupOld"]
    assert 'cronjob="threadhold-backup"' in alert["expr"]


def test_every_kubernetes_object_has_the_app_label() -> None:
    for key in OBJECTS:
        assert OBJECTS[key]["metadata"]["labels"]["app.kubernetes.io/name"] == "threadhold"


def test_config_map_holds_no_secrets() -> None:
    assert CONFIG.keys().isdisjoint(SECRET)
    assert not [name for name in CONFIG if re.search("SECRET|KEY$|PASSWORD|_URL$", name)]
    assert "POSTGRES" not in json.dumps(SECRET)
    assert {"DATABASE_URL", "REDIS_URL"} <= SECRET.keys()


def test_documented_connections_are_enough_for_a_cluster() -> None:
    scalers = [OBJECTS["HorizontalPodAutoscaler", name]["spec"] for _, name in DEPLOYMENTS]
    max_pods = sum(scaler["maxReplicas"] for scaler in scalers)
    surge = sum(
        OBJECTS[key]["spec"]["strategy"]["rollingUpdate"]["maxSurge"] for key in DEPLOYMENTS
    )
    # During an update old pods still finish beside new ones; the migration Job is one more.
    pods = 2 * max_pods + surge + 1
    [documented] = promised((DEPLOY / "kubernetes" / "secret.example.yaml").read_text())
    assert documented >= pods * PER_PROCESS + OTHERS
    assert documented in promised(README)
    assert f"go up to {max_pods} pods" in README


def test_documentation_says_what_a_process_takes() -> None:
    readme = " ".join(README.split())
    assert re.findall(r"up to (\d+) connections", readme) == [str(PER_PROCESS)] * 2
    assert f"takes up to {PER_PROCESS}." in (DEPLOY / "compose.yaml").read_text()


def test_documentation_says_how() -> None:
    for path in ("deploy/Dockerfile", "deploy/compose.yaml", "deploy/kubernetes"):
        assert path in README


def test_scaler_fits_the_workers_and_asks_for_metrics_that_exist() -> None:
    scaler = yaml.safe_load((DEPLOY / "keda" / "worker.yaml").read_text())["spec"]
    worker = ("Deployment", "threadhold-worker")
    assert scaler["scaleTargetRef"]["name"] == worker[1]
    # It takes the place of the autoscaler, whose number of pods the connections are planned for.
    other = OBJECTS["HorizontalPodAutoscaler", worker[1]]["spec"]
    limits = (scaler["minReplicaCount"], scaler["maxReplicaCount"])
    assert limits == (other["minReplicas"], other["maxReplicas"])
    [trigger] = [each["metadata"] for each in scaler["triggers"]]
    assert problems(trigger["query"]) == []
    assert "threadhold_queue_depth" in trigger["query"]
    assert int(trigger["threshold"]) < int(environment(worker)["N_JOBS_PER_WORKER"])
