"""Live: what runs beside a deployed model, watches it, keeps it safe and keeps a record; imported when asked for."""

from importlib import import_module
from typing import Any

_HOME = {
    "Profile": "profile",
    "Signals": "signals",
    "Alarm": "alarms",
    "Alarms": "alarms",
    "Accuracy": "accuracy",
    "AccuracyEstimate": "accuracy",
    "ShiftWindow": "place",
    "Webhook": "webhook",
    "Replay": "simulate",
    "PrometheusMetrics": "metrics",
    "OpenTelemetryMetrics": "metrics",
    "LogReader": "reader",
    "LiveServer": "server",
    "LiveRun": "run",
    "GuardSettings": "settings",
    "Guard": "guard",
}
"""Name -> the module of this room that it lives in."""
__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """Import what is asked for, and nothing else."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
