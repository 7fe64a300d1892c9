"""Machine: when and on what a study ran, for whoever reads its times and compares its numbers."""

import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RUN_ON = "run on"
"""The setting of a study that holds this."""
CPU_INFO = Path("/proc/cpuinfo")


def describe_machine(gpu: str = "") -> dict[str, Any]:
    """Return the date (UTC), the GPU if one is used, the processor, its cores, the memory in gigabytes, the system."""
    facts: dict[str, Any] = {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "GPU": gpu,
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory in GB": _memory(),
        "system": f"{platform.system()} {platform.release()}",
    }
    return {name: fact for name, fact in facts.items() if fact}


def _processor() -> str:
    """Return what the processor calls itself, as far as the system says."""
    try:
        lines = CPU_INFO.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()


def _memory() -> int | None:
    """Return the gigabytes of memory; None where the system does not say."""
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (AttributeError, OSError, ValueError):
        return None
