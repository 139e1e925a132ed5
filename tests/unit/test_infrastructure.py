"""The manifests are valid, say what the runbook says, and lead to the hosted model and back without losing its key."""

from __future__ import annotations

import copy
import functools
import json
import re
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import jsonpatch
import kubernetes_validate
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from memory_core.config import Settings, settings

FOLDER = Path(__file__).resolve().parents[2] / "infrastructure"
MANIFESTS = ("ollama.yaml", "workbench.yaml", "migrate.yaml", "sweep.yaml", "ingress.yaml")
PATCHES = ("secret-to-ollama", "secret-to-hosted", "configmap-to-ollama", "configmap-to-hosted")
RUNBOOK = (FOLDER / "README.md").read_text(encoding="utf-8")
SIGN_IN = (FOLDER.parent / "docs" / "sign-in.md").read_text(encoding="utf-8")
OLDEST, NEWEST = "1.30", kubernetes_validate.latest_version()
MODEL_SETTINGS = {
    *("MODEL_PROVIDER", "MODEL_BASE_URL", "MODEL_FAST", "MODEL_BALANCED", "MODEL_DEEP", "MODEL_API_KEY"),
    *("MODEL_MAX_OUTPUT_TOKENS", "MODEL_REASONING_EFFORT", "MODEL_DEADLINE_S", "MODEL_TOKENS_PER_MINUTE"),
    *("MODEL_NUM_CTX", "MODEL_NUM_THREAD", "MODEL_KEEP_ALIVE"),
}
KNOWN = {name.upper() for name in Settings.model_fields} | MODEL_SETTINGS
COMMANDS = {
    "doctor",
    "eval",
    "member",
    "pull",
    "smoke",
    "sweep",
    "replay-erasures",
    "verify-trail",
}  # the manifests have serve and migrate
OLLAMA_KEY, NOTHING_SAVED = "ollama", "none"


@functools.cache
def _documents(name: str) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8")))


def document(name: str, kind: str) -> dict[str, Any]:
    """The one document of a kind in a manifest."""
    (found,) = [each for each in _documents(name) if each["kind"] == kind]
    return copy.deepcopy(found)


def pod(name: str, kind: str = "Deployment") -> dict[str, Any]:
    spec: dict[str, Any] = document(name, kind)["spec"]
    if kind == "CronJob":
        spec = spec["jobTemplate"]["spec"]
    found: dict[str, Any] = spec["template"]["spec"]
    return found


def container(name: str, kind: str = "Deployment") -> dict[str, Any]:
    (only,) = pod(name, kind)["containers"]
    return dict(only)


def plain_variables(of: dict[str, Any]) -> dict[str, str]:
    return {each["name"]: each["value"] for each in of["env"] if "value" in each}


def secret_keys(of: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Each variable that comes from a Secret, with the Secret's name and the key in it."""
    found = {each["name"]: each["valueFrom"]["secretKeyRef"] for each in of["env"] if "valueFrom" in each}
    return {name: (reference["name"], reference["key"]) for name, reference in found.items()}


def configuration() -> dict[str, str]:
    data: dict[str, str] = document("workbench.yaml", "ConfigMap")["data"]
    return data


def operations(patch: str) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = json.loads((FOLDER / "patches" / f"{patch}.json").read_text(encoding="utf-8"))
    return listed


def patched(document: dict[str, Any], patch: str) -> dict[str, Any]:
    """The document after a patch, as the runbook has it applied: whole or not at all."""
    after: dict[str, Any] = jsonpatch.JsonPatch(operations(patch)).apply(document)
    return after


def base64(text: str) -> str:
    return b64encode(text.encode()).decode()


def secret(model_api_key: str, *, saved: str = NOTHING_SAVED) -> dict[str, Any]:
    """The Secret as the API server shows it: /data in base64."""
    values = {
        "DATABASE_URL": "postgresql://memory_app@db/memory",
        "HOSTED_MODEL_API_KEY": saved,
        "MODEL_API_KEY": model_api_key,
    }
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "memory-workbench"},
        "type": "Opaque",
        "data": {name: base64(value) for name, value in values.items()},
    }


def hosted_configmap() -> dict[str, Any]:
    return patched(document("workbench.yaml", "ConfigMap"), "configmap-to-hosted")


def section(title: str) -> str:
    (text,) = re.findall(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", RUNBOOK, re.MULTILINE | re.DOTALL)
    return str(text)


def commands(text: str = RUNBOOK) -> list[str]:
    """What the runbook has typed, in its order."""
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.M | re.S)
    return [line for block in blocks for line in re.sub(r"\\\n\s*", "", block).splitlines()]


def table(intro: str) -> dict[str, str]:
    """The values of the table under an introduction that starts so."""
    (after,) = re.findall(rf"^{re.escape(intro)}.*?\n\n(.*?)\n\n", RUNBOOK, re.MULTILINE | re.DOTALL)
    return dict(re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", after, re.MULTILINE))


# The manifests


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("name", MANIFESTS)
def test_every_document_is_what_kubernetes_accepts(name: str, version: str) -> None:
    for each in _documents(name):
        kubernetes_validate.validate(each, version, strict=True)


def test_a_misspelt_field_would_be_noticed() -> None:
    wrong = document("ollama.yaml", "Deployment")
    wrong["spec"]["replica"] = 1
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(wrong, NEWEST, strict=True)


def test_every_manifest_and_patch_is_in_the_runbook() -> None:
    assert sorted(MANIFESTS) == sorted(path.name for path in FOLDER.glob("*.yaml"))
    assert sorted(PATCHES) == sorted(path.stem for path in (FOLDER / "patches").iterdir())
    typed = "\n".join(commands())
    for name in MANIFESTS:
        assert f"kubectl apply -f infrastructure/{name}" in typed
    for patch in PATCHES:
        kind = patch.split("-")[0]
        assert (
            f"kubectl patch {kind} memory-workbench --type=json --patch-file=infrastructure/patches/{patch}.json"
            in typed
        )


def test_the_values_of_ollama_are_what_the_runbook_says() -> None:
    ollama = container("ollama.yaml")
    resources = ollama["resources"]
    assert table("Ollama (`ollama.yaml`):") == {
        "image": ollama["image"],
        "memory request": resources["requests"]["memory"],
        "memory limit": resources["limits"]["memory"],
        "cpu request": resources["requests"]["cpu"],
        "cpu limit": resources["limits"]["cpu"],
        "storage": document("ollama.yaml", "PersistentVolumeClaim")["spec"]["resources"]["requests"]["storage"],
        **plain_variables(ollama),
    }


def test_the_values_of_the_workbench_are_what_the_runbook_says() -> None:
    assert table("The workbench (ConfigMap `memory-workbench` in `workbench.yaml`):") == configuration()


def test_ollama_is_sized_as_decided() -> None:
    ollama = container("ollama.yaml")
    variables = plain_variables(ollama)
    assert variables["OLLAMA_MAX_LOADED_MODELS"] == "2"
    assert variables["OLLAMA_NUM_PARALLEL"] == "1"
    assert ollama["resources"]["requests"]["memory"] == "1536Mi"
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= ollama.keys()


def test_what_ollama_and_the_workbench_both_say_is_the_same() -> None:
    ollama = container("ollama.yaml")
    served, asked = plain_variables(ollama), configuration()
    assert asked["MODEL_NUM_CTX"] == served["OLLAMA_CONTEXT_LENGTH"]
    assert asked["MODEL_KEEP_ALIVE"] == served["OLLAMA_KEEP_ALIVE"]
    assert asked["MODEL_NUM_THREAD"] == ollama["resources"]["limits"]["cpu"]


def test_ollama_is_found_where_the_configuration_says() -> None:
    service = document("ollama.yaml", "Service")
    (port,) = service["spec"]["ports"]
    address = f"http://{service['metadata']['name']}:{port['port']}"
    assert configuration()["MODEL_BASE_URL"] == configuration()["OLLAMA_HOST"] == address
    labels = document("ollama.yaml", "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"].items() <= labels.items()
    (listening,) = container("ollama.yaml")["ports"]
    assert (listening["name"], listening["containerPort"]) == (port["targetPort"], port["port"])
    assert plain_variables(container("ollama.yaml"))["OLLAMA_HOST"] == f"0.0.0.0:{listening['containerPort']}"


def test_models_outlive_ollamas_pod() -> None:
    (claimed,) = [each for each in pod("ollama.yaml")["volumes"] if "persistentVolumeClaim" in each]
    claim = document("ollama.yaml", "PersistentVolumeClaim")
    assert claimed["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
    mounts = {each["name"]: each["mountPath"] for each in container("ollama.yaml")["volumeMounts"]}
    assert mounts[claimed["name"]] == plain_variables(container("ollama.yaml"))["HOME"]
    assert document("ollama.yaml", "Deployment")["spec"]["strategy"] == {"type": "Recreate"}


def test_only_the_workbench_reaches_ollama() -> None:
    policy = document("ollama.yaml", "NetworkPolicy")["spec"]
    labels = document("ollama.yaml", "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()
    workbench = document("workbench.yaml", "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert policy["policyTypes"] == ["Ingress"]
    assert policy["ingress"] == [
        {"from": [{"podSelector": {"matchLabels": workbench}}], "ports": [{"protocol": "TCP", "port": 11434}]}
    ]


def test_only_the_ingress_controller_reaches_the_workbench() -> None:
    assert [each["kind"] for each in _documents("workbench.yaml")] == [
        "ConfigMap",
        "PersistentVolumeClaim",
        "Deployment",
        "NetworkPolicy",
    ]
    policy = document("workbench.yaml", "NetworkPolicy")["spec"]
    labels = document("workbench.yaml", "Deployment")["spec"]["template"]["metadata"]["labels"]
    controller = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}
    assert policy == {
        "podSelector": {"matchLabels": labels},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [controller], "ports": [{"protocol": "TCP", "port": 8501}]}],
    }


def test_the_way_in_is_encrypted_and_leads_to_where_the_workbench_listens() -> None:
    workbench, service = container("workbench.yaml"), document("ingress.yaml", "Service")["spec"]
    assert workbench["command"] == [
        *("python", "-m", "memory_core", "serve", "--address", "0.0.0.0", "--port", "8501"),
    ]
    assert workbench["ports"] == [{"name": "http", "containerPort": 8501}]
    labels = document("workbench.yaml", "Deployment")["spec"]["template"]["metadata"]["labels"]
    assert service == {"selector": labels, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]}
    ingress = document("ingress.yaml", "Ingress")["spec"]
    (rule,), (tls,) = ingress["rules"], ingress["tls"]
    assert tls["hosts"] == [rule["host"]]
    assert f"kubectl create secret tls {tls['secretName']} --cert=tls.crt --key=tls.key" in commands()
    assert f'redirect_uri = "https://{rule["host"]}/oauth2callback"' in SIGN_IN
    (path,) = rule["http"]["paths"]
    assert path["backend"]["service"] == {
        "name": document("ingress.yaml", "Service")["metadata"]["name"],
        "port": {"name": "http"},
    }


def test_whether_the_workbench_is_up_is_asked_where_nobody_has_to_sign_in() -> None:
    for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
        assert container("workbench.yaml")[probe]["httpGet"] == {"path": "/_stcore/health", "port": "http"}


def test_the_sign_in_lies_where_the_workbench_looks_for_it() -> None:
    (mount,) = [one for one in container("workbench.yaml")["volumeMounts"] if one["name"] == "sign-in"]
    (volume,) = [one for one in pod("workbench.yaml")["volumes"] if one["name"] == "sign-in"]
    image = (FOLDER / "Dockerfile").read_text(encoding="utf-8")
    (folder,) = re.findall(r"^WORKDIR (\S+)$", image, re.M)
    assert mount["mountPath"] == f"{folder}/.streamlit/{mount['subPath']}"
    assert mount["readOnly"] is True
    made = f"kubectl create secret generic {volume['secret']['secretName']} --from-file={mount['subPath']}"
    assert made in commands()
    assert (volume["secret"]["defaultMode"] & 0o007) == 0


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, "Deployment") for name in MANIFESTS[:2]] + [("migrate.yaml", "Job"), ("sweep.yaml", "CronJob")],
)
def test_no_container_has_more_rights_than_it_uses(name: str, kind: str) -> None:
    spec = pod(name, kind)
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["automountServiceAccountToken"] is False
    assert container(name, kind)["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


# The configuration


def test_the_workbench_knows_every_variable_it_is_given() -> None:
    patched_names = {
        operation["path"].removeprefix("/data/")
        for patch in PATCHES
        if patch.startswith("configmap")
        for operation in operations(patch)
    }
    workbench, migrate = container("workbench.yaml"), container("migrate.yaml", "Job")
    given_names = configuration().keys() | patched_names | secret_keys(workbench).keys() | secret_keys(migrate).keys()
    assert given_names <= KNOWN
    assert plain_variables(migrate) == {"HOME": "/tmp"}
    # The last one is the server's own: uvicorn reads it.
    assert plain_variables(workbench) == {"HOME": "/tmp", "FORWARDED_ALLOW_IPS": "10.0.0.0/8"}


@pytest.mark.parametrize("environment", ["development", "production"])
@pytest.mark.parametrize("hosted", [False, True])
def test_the_workbench_accepts_its_configuration(
    environment: str, hosted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in KNOWN:
        monkeypatch.delenv(name, raising=False)
    given_data = hosted_configmap()["data"] if hosted else configuration()
    secrets = {"MODEL_API_KEY": "sk-hosted" if hosted else OLLAMA_KEY, "DATABASE_URL": "postgresql://a@db/memory"}
    for name, value in {**given_data, **secrets, "APP_ENV": environment}.items():
        monkeypatch.setenv(name, value)
    read = settings()
    assert read.memory_embedder == "ollama:nomic-embed-text"
    assert read.app_env == environment


def test_the_configuration_is_of_production() -> None:
    assert configuration()["APP_ENV"] == "production"


def test_every_config_map_and_secret_is_the_one_of_the_runbook() -> None:
    workbench, migrate = container("workbench.yaml"), container("migrate.yaml", "Job")
    assert workbench["envFrom"] == [{"configMapRef": {"name": "memory-workbench"}}]
    assert document("workbench.yaml", "ConfigMap")["metadata"]["name"] == "memory-workbench"
    made: dict[str, set[str]] = {}
    for name, file in re.findall(r"^kubectl create secret generic (\S+) --from-env-file=(\S+)$", RUNBOOK, re.M):
        (block,) = re.findall(rf"^```ini\n# {re.escape(file)}\n(.*?)^```", RUNBOOK, re.M | re.S)
        made[name] = set(re.findall(r"^(\w+)=", block, re.M))
    assert made == {
        "memory-workbench": {"MODEL_API_KEY", "HOSTED_MODEL_API_KEY", "DATABASE_URL"},
        "memory-workbench-owner": {"MIGRATION_DATABASE_URL"},
    }
    sweep = container("sweep.yaml", "CronJob")
    for variable, (name, key) in (secret_keys(workbench) | secret_keys(migrate) | secret_keys(sweep)).items():
        assert variable == key
        assert key in made[name]


def test_the_workbench_is_given_neither_the_saved_key_nor_the_owners_role() -> None:
    assert secret_keys(container("workbench.yaml")).keys() == {"MODEL_API_KEY", "DATABASE_URL"}


def test_the_sweep_runs_every_night_as_the_applications_role() -> None:
    job = document("sweep.yaml", "CronJob")["spec"]
    assert job["schedule"] == "30 2 * * *"
    assert job["concurrencyPolicy"] == "Forbid"
    assert container("sweep.yaml", "CronJob")["command"][:4] == ["python", "-m", "memory_core", "sweep"]
    assert secret_keys(container("sweep.yaml", "CronJob")).keys() == {"DATABASE_URL"}


def test_the_ledger_lies_on_a_volume_of_its_own_that_the_workbench_can_write() -> None:
    folder = configuration()["MEMORY_LEDGER"]
    (mount,) = [one for one in container("workbench.yaml")["volumeMounts"] if one["mountPath"] == folder]
    (volume,) = [one for one in pod("workbench.yaml")["volumes"] if one["name"] == mount["name"]]
    claim = document("workbench.yaml", "PersistentVolumeClaim")["metadata"]["name"]
    assert volume["persistentVolumeClaim"]["claimName"] == claim
    assert pod("workbench.yaml")["securityContext"]["fsGroup"] == pod("workbench.yaml")["securityContext"]["runAsGroup"]
    assert document("workbench.yaml", "Deployment")["spec"]["strategy"] == {"type": "Recreate"}


def test_no_secret_is_committed() -> None:
    assert all(each["kind"] != "Secret" for name in MANIFESTS for each in _documents(name))
    values = [operation["value"] for patch in PATCHES[:2] for operation in operations(patch) if "value" in operation]
    assert {b64decode(value, validate=True).decode() for value in values} == {OLLAMA_KEY, NOTHING_SAVED}
    for path in FOLDER.rglob("*.*"):
        passwords = re.findall(r"://[^/\s:]+:([^@\s]+)@", path.read_text(encoding="utf-8"))
        assert set(passwords) <= {"…"}, path.name


# The runbook


def test_the_models_that_are_pulled_are_the_ones_that_are_named() -> None:
    pulled = re.findall(r"ollama pull (\S+)", "\n".join(commands(section("Deploy"))))
    data = configuration()
    named = {data[f"MODEL_{tier}"] for tier in ("FAST", "BALANCED", "DEEP")}
    assert sorted(pulled) == sorted({*named, data["MEMORY_EMBEDDER"].removeprefix("ollama:")})
    assert len(pulled) == int(plain_variables(container("ollama.yaml"))["OLLAMA_MAX_LOADED_MODELS"])


def test_models_are_there_before_a_configuration_names_them() -> None:
    steps = commands(section("Deploy"))
    started = steps.index("kubectl apply -f infrastructure/ollama.yaml")
    pulls = [place for place, step in enumerate(steps) if " ollama pull " in step]
    configured = steps.index("kubectl apply -f infrastructure/workbench.yaml")
    assert started < min(pulls) < max(pulls) < configured
    why = " ".join(section("Deploy").split("**1.")[0].split())
    assert "names a model that is not there yet makes every run fail with `gateway.invalid_request`" in why
    assert section("Move from a hosted model to Ollama").strip().startswith("Do steps 1 and 2 of Deploy first.")
    next_model = commands(section("Symptoms"))
    assert "pull llama3.2:1b" in next_model[0]
    assert "llama3.2:1b" in next_model[1]


def test_only_commands_that_exist_are_typed() -> None:
    assert set(re.findall(r"python -m memory_core ([\w-]+)", "\n".join(commands()))) == COMMANDS


def test_a_smoke_run_follows_the_check() -> None:
    typed = [re.findall(r"memory_core (\w+)", step)[0] for step in commands(section("Verify"))]
    assert typed == ["doctor", "eval", "smoke"]
    assert "eval suites" in section("Verify")


@pytest.mark.parametrize(
    ("symptom", "advice"),
    [
        ("a tool fails on call 1", "the model"),
        ("a run ends at its deadline", "lower `MODEL_MAX_OUTPUT_TOKENS`, or step up the node"),
        ("`gateway.invalid_request`", "`MODEL_REASONING_EFFORT` is set"),
        ("`gateway.invalid_request`", "not pulled"),
        ("other pods restart", "lower its memory limit"),
    ],
)
def test_the_runbook_knows_the_symptom(symptom: str, advice: str) -> None:
    rows = [row for row in section("Symptoms").splitlines() if row.startswith(f"| {symptom}")]
    assert len(rows) == 1
    assert advice in rows[0]


# To Ollama and back


@given(key=st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=200))
def test_the_hosted_key_comes_back_when_both_patches_were_applied(key: str) -> None:
    first = secret(key)
    moved = patched(first, "secret-to-ollama")
    assert moved["data"]["MODEL_API_KEY"] == base64(OLLAMA_KEY)
    assert moved["data"]["HOSTED_MODEL_API_KEY"] == base64(key)
    assert patched(moved, "secret-to-hosted") == first


@given(moves=st.lists(st.sampled_from(["secret-to-ollama", "secret-to-hosted"]), max_size=8))
def test_no_order_of_patches_loses_the_hosted_key(moves: list[str]) -> None:
    held = secret("sk-hosted")
    for move in moves:
        try:
            held = patched(held, move)
        except jsonpatch.JsonPatchTestFailed:
            continue
        places = [name for name, value in held["data"].items() if value == base64("sk-hosted")]
        assert places == ["HOSTED_MODEL_API_KEY" if move == "secret-to-ollama" else "MODEL_API_KEY"]
    assert base64("sk-hosted") in held["data"].values()


@pytest.mark.parametrize("patch", ["secret-to-ollama", "secret-to-hosted"])
def test_a_move_made_twice_is_refused_and_changes_nothing(patch: str) -> None:
    start = secret("sk-hosted") if patch == "secret-to-ollama" else secret(OLLAMA_KEY, saved="sk-hosted")
    moved = patched(start, patch)
    before = copy.deepcopy(moved)
    with pytest.raises(jsonpatch.JsonPatchTestFailed):
        patched(moved, patch)
    assert moved == before


def test_a_secret_without_a_place_to_save_the_key_is_left_as_it_is() -> None:
    start = secret("sk-hosted")
    del start["data"]["HOSTED_MODEL_API_KEY"]
    with pytest.raises(jsonpatch.JsonPatchException):
        patched(start, "secret-to-ollama")
    assert start["data"]["MODEL_API_KEY"] == base64("sk-hosted")


def test_one_who_started_on_ollama_with_a_hosted_key_saved_can_go_to_it() -> None:
    moved = patched(secret(OLLAMA_KEY, saved="sk-hosted"), "secret-to-hosted")
    assert moved["data"]["MODEL_API_KEY"] == base64("sk-hosted")


@pytest.mark.parametrize("patch", PATCHES)
def test_every_patch_is_of_data_in_what_can_be_read_back(patch: str) -> None:
    for operation in operations(patch):
        assert operation["path"].startswith("/data/")
        assert operation.get("from", "/data/").startswith("/data/")


@pytest.mark.parametrize("patch", PATCHES[:2])
def test_a_key_is_saved_before_it_is_replaced(patch: str) -> None:
    assert [operation["op"] for operation in operations(patch)] == ["test", "copy", "replace"]


def test_the_configuration_comes_back_when_both_patches_were_applied() -> None:
    on_ollama, hosted = document("workbench.yaml", "ConfigMap"), hosted_configmap()
    assert patched(hosted, "configmap-to-ollama") == on_ollama
    assert patched(patched(hosted, "configmap-to-ollama"), "configmap-to-hosted") == hosted
    assert hosted["data"]["MODEL_PROVIDER"] == "openai"


@pytest.mark.parametrize("patch", ["configmap-to-ollama", "configmap-to-hosted"])
def test_a_configuration_patched_twice_is_the_same(patch: str) -> None:
    once = patched(document("workbench.yaml", "ConfigMap"), patch)
    assert patched(once, patch) == once


def test_a_reasoning_effort_and_a_ceiling_do_not_go_along_to_ollama() -> None:
    hosted = hosted_configmap()
    hosted["data"] |= {"MODEL_REASONING_EFFORT": "low", "MODEL_TOKENS_PER_MINUTE": "90000"}
    assert patched(hosted, "configmap-to-ollama") == document("workbench.yaml", "ConfigMap")


def test_what_belongs_to_ollama_does_not_go_along_to_the_hosted_model() -> None:
    left = {"MODEL_NUM_CTX", "MODEL_NUM_THREAD", "MODEL_KEEP_ALIVE", "MODEL_DEADLINE_S"}
    assert not left & hosted_configmap()["data"].keys()


def test_what_the_operator_fills_in_says_so() -> None:
    data = hosted_configmap()["data"]
    for name in ("MODEL_BASE_URL", "MODEL_FAST", "MODEL_BALANCED", "MODEL_DEEP"):
        assert "FILL-IN" in data[name]


@pytest.mark.parametrize(
    ("title", "order"),
    [
        ("Move from a hosted model to Ollama", ["secret-to-ollama", "configmap-to-ollama"]),
        ("Roll back to the hosted model", ["configmap-to-hosted", "secret-to-hosted"]),
    ],
)
def test_the_hosted_key_is_never_sent_to_ollama(title: str, order: list[str]) -> None:
    steps = commands(section(title))
    assert re.findall(r"patches/(\S+)\.json", "\n".join(steps)) == order
    assert steps[-2:] == [
        "kubectl rollout restart deployment/memory-workbench",
        "kubectl rollout status deployment/memory-workbench",
    ]
