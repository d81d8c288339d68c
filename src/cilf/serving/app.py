"""The application of a prediction server."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import UploadFile

from cilf import __version__
from cilf.console.guard import Access, Guard
from cilf.console.metrics import add_metrics
from cilf.console.uploads import TooLarge
from cilf.data import Instances
from cilf.errors import BadInput, CilfError
from cilf.serving.inputs import MOST_INSTANCES, read_batch, read_images
from cilf.serving.live_model import Busy, LiveModel
from cilf.serving.window_metrics import WindowMetrics
from cilf.workflow.detection import detect_instances
from cilf.workflow.prediction import predict_instances
from cilf.workflow.versions import LoadedModel

FILES = "files"
RETRY_SECONDS = "1"

Read = Callable[[LoadedModel], Instances]  # the instances of a request


def make_app(model: LiveModel, access: Access) -> FastAPI:
    """The application on a model."""
    app = FastAPI(title="cilf serve", version=__version__, docs_url=None, redoc_url=None)
    metrics = WindowMetrics()

    @app.post("/predict")
    async def predict(request: Request) -> JSONResponse:
        """The known class of each instance."""
        return await _answer(request, lambda loaded, read: _predict(loaded, read, metrics))

    @app.post("/detect")
    async def detect(request: Request) -> JSONResponse:
        """The novel classes in a window, and their members."""
        return await _answer(request, lambda loaded, read: _detect(loaded, read, metrics))

    @app.get("/readyz", include_in_schema=False)
    async def readyz() -> dict[str, Any]:
        """The model is loaded."""
        return {"status": "ready", "model_version": model.loaded.version}

    async def _answer(
        request: Request, work: Callable[[LoadedModel, Read], dict[str, Any]]
    ) -> JSONResponse:
        read = await _read_request(request)
        said = await run_in_threadpool(model.use, lambda loaded: work(loaded, read))
        return JSONResponse(said)

    async def refuse(request: Request, error: Exception) -> Response:
        wait = {"Retry-After": RETRY_SECONDS} if isinstance(error, Busy) else None
        return JSONResponse({"detail": str(error)}, status_code=_status(error), headers=wait)

    app.add_exception_handler(CilfError, refuse)
    add_metrics(app, lambda: metrics.collect(model))
    app.add_middleware(Guard, access=access)
    return app


def _status(error: Exception) -> int:
    statuses: Mapping[type[Exception], int] = {Busy: 503, TooLarge: 413}
    return next((status for kind, status in statuses.items() if isinstance(error, kind)), 400)


async def _read_request(request: Request) -> Read:
    """Read the body, whose instances are read once there is a model to say how."""
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        async with request.form(max_files=MOST_INSTANCES) as form:
            files = [
                (each.filename or "", await each.read())
                for each in form.getlist(FILES)
                if isinstance(each, UploadFile)
            ]
        return lambda loaded: read_images(files, loaded)
    try:
        document = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise BadInput(
            "the body has to be JSON, or images as multipart/form-data with the field 'files'."
        ) from error
    return lambda loaded: read_batch(document, loaded)


def _predict(loaded: LoadedModel, read: Read, metrics: WindowMetrics) -> dict[str, Any]:
    instances = read(loaded)
    found = predict_instances(loaded, instances)
    metrics.add_known(loaded.learner, loaded.version, instances.X, found.labels, found.novelty_p)
    columns = found.columns()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    return {"model_version": loaded.version, "predictions": rows}


def _detect(loaded: LoadedModel, read: Read, metrics: WindowMetrics) -> dict[str, Any]:
    instances = read(loaded)
    found, _ = detect_instances(loaded, instances)
    metrics.add_window(len(found), int(found.is_novel.sum()), found.n_novel)
    known = ~found.is_novel
    metrics.add_known(
        loaded.learner, loaded.version, instances.X[known], found.label[known],
        found.novelty_p[known],
    )  # fmt: skip
    rows = zip(
        instances.ids.tolist(), found.cluster.tolist(), found.label.astype(str).tolist(),
        found.novelty.tolist(), found.novelty_p.tolist(), strict=True,
    )  # fmt: skip
    return {
        "model_version": loaded.version,
        "n_novel": found.n_novel,
        "count_probability": {str(k): p for k, p in found.count_probability.items()},
        "instances": [
            {
                "identity": identity,
                "cluster": None if cluster < 0 else cluster + 1,
                "label": label if cluster < 0 else None,
                "nearest": label,
                "novelty": novelty if math.isfinite(novelty) else None,
                "novelty_p": p,
            }
            for identity, cluster, label, novelty, p in rows
        ],
    }
