"""The provenance of a result: versions, commit and machine, without host names or paths."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import cilf

PACKAGES = ("cilf", "torch", "numpy", "scikit-learn")
CPU_INFO = Path("/proc/cpuinfo")


def provenance() -> dict[str, Any]:
    """The versions, commit and machine of a result, as JSON values."""
    return {
        "versions": {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}},
        "commit": commit(Path(cilf.__file__).parent),
        "machine": {"system": platform.system(), "cpu": _cpu(), "cores": os.cpu_count()},
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def commit(package: Path) -> str | None:
    """The commit of a package's checkout, "-dirty" if it was changed; None without a checkout."""
    # A package installed below somebody else's checkout is not part of it: git must track it.
    if _git(package, "ls-files", "--error-unmatch", "__init__.py") is None:
        return None
    return _git(package, "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*")


def _git(folder: Path, *arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],  # nosec B607  # the git that the user has
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):  # no git here, or no checkout
        return None
    return done.stdout.strip()


def _cpu() -> str:
    lines = CPU_INFO.read_text(encoding="utf-8").splitlines() if CPU_INFO.is_file() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())
