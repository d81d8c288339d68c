"""The files that start a console elsewhere fit each other, the command line and a real server."""

from __future__ import annotations

import configparser
import json
import re
import shlex
import subprocess
import sys
import tomllib
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.main import get_command

from cilf import cli

from .console.servers import Server, serving

ROOT = Path(__file__).parent.parent
TOKEN = "a-token-of-the-tests"
Instruction = tuple[str, str]  # such as ("USER", "10001:10001")


def read_dockerfile() -> list[Instruction]:
    """The instructions in order, with continued lines joined."""
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    return [
        (name, rest) for name, _, rest in (li.partition(" ") for li in joined.split("\n")) if name
    ]


def final_stage() -> list[Instruction]:
    instructions = read_dockerfile()
    start = max(i for i, (name, _) in enumerate(instructions) if name == "FROM")
    return instructions[start:]


def last(name: str) -> str:
    """The instruction of this name that counts."""
    return [rest for each, rest in final_stage() if each == name][-1]


def read_compose() -> dict[str, Any]:
    composed = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    assert isinstance(composed, dict)
    return composed


def image_command() -> list[str]:
    command = json.loads(last("CMD"))
    assert isinstance(command, list)
    return command


def compose_command() -> list[str]:
    """The command of the service, as its shell runs it."""
    shell, flag, script = read_compose()["services"]["console"]["command"]
    assert (shell, flag) == ("sh", "-c")
    subprocess.run(["sh", "-n", "-c", script.replace("$$", "$")], check=True)
    return shlex.split(script.partition(" exec ")[2])


def unit_command() -> list[str]:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str  # type: ignore[assignment, method-assign]
    unit.read(ROOT / "deploy" / "cilf-console.service")
    program, *arguments = shlex.split(unit["Service"]["ExecStart"])
    assert program.startswith("/"), "systemd wants an absolute path"
    return [Path(program).name, *arguments]


@pytest.mark.parametrize("command", [image_command, compose_command, unit_command])
def test_the_command_line_takes_each_command(command: Any) -> None:
    program, verb, *arguments = command()
    assert program == "cilf"
    group = get_command(cli.app)
    with typer.Context(group) as context:
        parsed = group.get_command(context, verb)  # type: ignore[attr-defined]
        given = parsed.make_context(verb, list(arguments)).params
    assert given["token_file"], "the token is a secret"
    assert given["token"] is None
    assert given["port"] == 8377


def test_the_image_is_built_of_what_is_there() -> None:
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name, rest in read_dockerfile():
        if name == "COPY" and not rest.startswith("--from"):
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists()
                assert f"!{source}" in kept, f"{source} is not sent to the builder"
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = set(tomllib.load(file)["project"]["optional-dependencies"])
    (asked,) = [rest for name, rest in read_dockerfile() if rest.startswith("EXTRAS=")]
    assert set(asked.removeprefix("EXTRAS=").split(",")) <= extras
    assert re.search(r"^torch==", (ROOT / "constraints.txt").read_text(), re.MULTILINE)


def test_the_image_runs_as_nobody_special_and_keeps_its_store() -> None:
    assert last("USER").partition(":")[0] not in ("root", "0")
    for command in (image_command(), compose_command()):
        store = Path(command[command.index("--store") + 1])
        assert store.parent == Path(last("VOLUME")), "a store can be made anew within the volume"
    assert f"store:{last('VOLUME')}" in read_compose()["services"]["console"]["volumes"]
    order = [name for name, _ in final_stage()]
    assert order.index("USER") < order.index("VOLUME"), "the volume belongs to the user"


def test_only_the_proxy_is_reached_from_outside() -> None:
    composed = read_compose()
    services = composed["services"]
    assert [name for name, service in services.items() if "ports" in service] == ["proxy"]
    assert composed["networks"]["inside"]["internal"] is True
    for name in ("console", "database"):
        assert services[name]["networks"] == ["inside"]
    caddy = (ROOT / "deploy" / "Caddyfile").read_text(encoding="utf-8")
    assert "reverse_proxy console:8377" in caddy
    assert "./deploy/Caddyfile:/etc/caddy/Caddyfile:ro" in services["proxy"]["volumes"]


def test_every_name_in_the_composition_is_declared() -> None:
    composed = read_compose()
    for service in composed["services"].values():
        assert set(service.get("secrets", ())) <= set(composed["secrets"])
        assert set(service["networks"]) <= set(composed["networks"])
        assert set(service.get("depends_on", ())) <= set(composed["services"])
        for volume in service["volumes"]:
            source = volume.split(":")[0]
            assert source.startswith((".", "$")) or source in composed["volumes"]
    ignored = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    for secret in composed["secrets"].values():
        assert secret["file"].startswith("./secrets/")
    assert "secrets/" in ignored, "a secret is never committed"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The command of the image on this machine, behind a proxy that is believed."""
    folder = tmp_path_factory.mktemp("image")
    (folder / "token").write_text(f"{TOKEN}\n", encoding="utf-8")
    command = image_command()
    options = command[command.index("--host") :]
    moved = {
        "/run/secrets/cilf_token": str(folder / "token"),
        "/data": str(folder),
        "0.0.0.0": "127.0.0.1",
        "8377": "0",
    }
    with pytest.MonkeyPatch.context() as environment:
        composed = read_compose()["services"]["console"]["environment"]
        environment.setenv("FORWARDED_ALLOW_IPS", composed["FORWARDED_ALLOW_IPS"])
        with serving(folder / "store", *(moved.get(each, each) for each in options)) as started:
            yield started


def test_the_health_check_tells_a_server_that_answers(server: Server) -> None:
    program, flag, code = json.loads(last("HEALTHCHECK").partition(" CMD ")[2])
    assert (program, flag) == ("python", "-c")
    here = code.replace("http://127.0.0.1:8377", server.url)
    assert here != code
    assert _run_python(here) == 0
    assert _run_python(code.replace(":8377", ":9")) != 0


def test_behind_the_proxy_a_login_stays_within_tls(server: Server) -> None:
    """The proxy says that the page came over TLS, so the cookie of the login is for TLS alone."""
    answer = _log_in(server, {"X-Forwarded-Proto": "https", "X-Forwarded-For": "192.0.2.7"})
    assert "Secure" in answer
    assert "Secure" not in _log_in(server, {})


def _log_in(server: Server, headers: dict[str, str]) -> str:
    """The cookie that the log-in sets."""
    form = urllib.parse.urlencode({"token": TOKEN}).encode()
    request = urllib.request.Request(f"{server.url}/login", form, headers)
    opener = urllib.request.build_opener(_StayHere)
    with pytest.raises(urllib.error.HTTPError) as answered:
        opener.open(request)
    with answered.value as answer:
        assert answer.code == 303
        return str(answer.headers["set-cookie"])


class _StayHere(urllib.request.HTTPRedirectHandler):
    """Follows no redirection."""

    def redirect_request(self, *_: Any) -> None:
        return None


def _run_python(code: str) -> int:
    return subprocess.run([sys.executable, "-c", code], capture_output=True).returncode
