"""Where the windows of a watched stream are detected: in folders, or in a console."""

from __future__ import annotations

import io
import json
import time
import urllib.error
import urllib.request
import uuid
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from cilf.console.gallery import encode_png
from cilf.data import Instances
from cilf.errors import BadConfig, BadInput
from cilf.workflow.detection import detect_read
from cilf.workflow.input_data import FORM_OF_AXES, IMAGES
from cilf.workflow.versions import LoadedModel

TIMEOUT = 60.0  # seconds of a request
LONGEST_DETECTION = 3600.0  # seconds
POLL_SECONDS = 1.0
ID = "id"  # the column of identities
DONE, FAILED = "done", "failed"  # of a window, in the REST interface of a console

Transport = Callable[[str, bytes | None, str], Any]  # path, body, its type -> the JSON answer


class Destination(ABC):
    """Detects in windows, and says what it found in each."""

    @abstractmethod
    def detect(
        self, number: int, state_id: str, instances: Instances, model: LoadedModel
    ) -> dict[str, Any]:
        """Detect in a window. Done again after a kill, it does not make a second window."""


class FindingsFolders(Destination):
    """A findings folder for each window."""

    def __init__(self, out: Path, source: str) -> None:
        self.out, self.source = out, source

    def detect(
        self, number: int, state_id: str, instances: Instances, model: LoadedModel
    ) -> dict[str, Any]:
        place = self.out / f"window-{number:04d}"
        findings = detect_read(model, instances, place, source=self.source)
        found = findings.assignments
        return {
            "findings": str(place.absolute()),
            "n_instances": len(found.ids),
            "n_novel": len(found.cluster_sizes),
            "n_novel_instances": int((found.cluster >= 0).sum()),
            "model_version": model.version,
        }


class ConsoleWindows(Destination):
    """Windows of a console, whose own model detects."""

    def __init__(
        self, url: str, send: Transport, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.url, self._send, self._sleep = url.rstrip("/"), send, sleep

    def detect(
        self, number: int, state_id: str, instances: Instances, model: LoadedModel
    ) -> dict[str, Any]:
        name = f"watch {state_id} {number:04d}"
        windows = self._send("/api/windows", None, "")
        window = next((row for row in windows if row["name"] == name), None)
        if window is None:
            window = self._send("/api/windows/upload", *_make_upload(name, instances, model))
        facts = self._wait(window["id"])
        n_known = sum(facts["known"].values())
        return {
            "findings": f"{self.url}/windows/{window['id']}",
            "n_instances": facts["n"],
            "n_novel": facts["n_clusters"],
            "n_novel_instances": facts["n"] - n_known,
            "model_version": facts["version"],
        }

    def _wait(self, window: int) -> Mapping[str, Any]:
        """The facts of a window, once its worker has detected."""
        end = time.monotonic() + LONGEST_DETECTION
        while time.monotonic() < end:
            rows = self._send("/api/windows", None, "")
            row = next((row for row in rows if row["id"] == window), None)
            if row is None or row["status"] == FAILED:
                raise BadInput(f"{self.url} could not detect in its window {window}: see there.")
            if row["status"] == DONE:
                facts: Mapping[str, Any] = row["facts"]
                return facts
            self._sleep(POLL_SECONDS)
        raise BadInput(f"{self.url} has not detected in its window {window} yet: see there.")


def make_transport(url: str, token: str | None) -> Transport:
    """Send to a console over HTTP."""
    if not url.startswith(("http://", "https://")):
        raise BadConfig(f"--console is {url!r}: give the address that 'cilf console' prints.")

    def send(path: str, body: bytes | None, content_type: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None:
            headers["Content-Type"] = content_type
        request = urllib.request.Request(url.rstrip("/") + path, body, headers)
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT) as answer:  # nosec B310  # http(s)
                return json.load(answer)
        except urllib.error.HTTPError as error:
            with error:
                said = error.read(500).decode(errors="replace")
            raise BadInput(f"{url} answers {error.code}: {' '.join(said.split())}") from error
        except (OSError, ValueError) as error:  # URLError and timeouts are OSErrors
            raise BadInput(
                f"{url} cannot be reached ({getattr(error, 'reason', error)})."
            ) from error

    return send


def _make_upload(name: str, instances: Instances, model: LoadedModel) -> tuple[bytes, str]:
    """The body of an upload, and its type."""
    is_image = FORM_OF_AXES[len(model.instance_shape)] == IMAGES
    content = _zip_images(instances) if is_image else _format_rows(instances, model)
    file = "window.zip" if is_image else "window.jsonl"
    boundary = uuid.uuid4().hex
    parts = [
        ('name="name"', name.encode()),
        (f'name="files"; filename="{file}"\r\nContent-Type: application/octet-stream', content),
    ]
    body = b"".join(
        f"--{boundary}\r\nContent-Disposition: form-data; {head}\r\n\r\n".encode() + part + b"\r\n"
        for head, part in parts
    )
    return body + f"--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"


def _zip_images(instances: Instances) -> bytes:
    """The images in the size of the model, which lose nothing by that."""
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for row, (identity, pixels) in enumerate(zip(instances.ids, instances.X, strict=True)):
            archive.writestr(f"{row:06d}-{PurePath(identity).stem}.png", encode_png(pixels))
    return written.getvalue()


def _format_rows(instances: Instances, model: LoadedModel) -> bytes:
    if not model.columns:
        raise BadInput("the model knows no columns, so that its console takes no table.")
    rows = instances.X[:, None] if instances.X.ndim == 1 else instances.X
    lines = []
    for identity, values in zip(instances.ids.tolist(), rows, strict=True):
        row = dict(zip(model.columns, np.asarray(values).tolist(), strict=True))
        lines.append(json.dumps({ID: identity} | row) + "\n")
    return "".join(lines).encode()
