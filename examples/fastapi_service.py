"""A FastAPI service around a guard: sync and async endpoints, clients at once, labels that come later, a restart.

`python examples/fastapi_service.py FOLDER` calls it without a network, and leaves the log of the guard in the folder.
"""

import asyncio
import sys
from pathlib import Path

import httpx
import torch
from fastapi import FastAPI, Response
from fastapi.concurrency import run_in_threadpool

from haptera.adapters import RDumb
from haptera.data import digits
from haptera.live import Guard, PrometheusMetrics
from haptera.models import ResNet
from haptera.models.training import fit
from haptera.shifts import Contrast


def service(guard: Guard) -> FastAPI:
    app, metrics = FastAPI(), PrometheusMetrics("digits")
    guard.listeners.append(metrics)
    app.get("/metrics")(lambda: Response(metrics.text(), media_type="text/plain"))

    @app.post("/predict")  # sync: FastAPI calls it in one of its threads
    def predict(body: dict) -> list[int]:
        return guard(torch.tensor(body["images"]), ids=body["ids"]).argmax(1).tolist()

    @app.post("/predict-async")  # async: a model would hold up the loop, so a thread calls it
    async def predict_async(body: dict) -> list[int]:
        return await run_in_threadpool(predict, body)

    @app.post("/labels")
    def label(body: dict) -> int:
        return guard.label(body["ids"], body["targets"])

    return app


async def ask(app: FastAPI, *paths: str, batches: list[dict]) -> None:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://service") as client:
        calls = [client.post(paths[place % len(paths)], json=batch) for place, batch in enumerate(batches)]
        assert all(answer.is_success for answer in await asyncio.gather(*calls))  # all at once


if __name__ == "__main__":
    log = Path(sys.argv[1]) / "live"
    torch.manual_seed(0)
    fit(net := ResNet(width=8, stem=2), digits("train", size=16), epochs=4)
    data, parts = digits("test", size=16), torch.arange(640).split(32)
    for shift in (Contrast(0), Contrast(5)):  # the service is restarted in between, and goes on where it was
        images = shift(data.images(torch.arange(640).numpy()))
        with Guard(net, RDumb, log=log, warmup=256, snapshot_every=5) as guard:
            sent = [{"images": images[part].tolist(), "ids": part.tolist()} for part in parts]
            asyncio.run(ask(app := service(guard), "/predict", "/predict-async", batches=sent))
            asyncio.run(ask(app, "/labels", batches=[{"ids": [639], "targets": [int(data.targets[639])]}]))
            print(f"step {guard.steps}: {guard.status()['alarm'] or 'no alarm'}; see it with: haptera live {log}")
