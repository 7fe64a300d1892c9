"""Memory: the most that a stretch of work takes.

On a GPU it is what torch's allocator gave out at most. On Linux without one it is the resident memory of the process,
whose high-water mark is set back first; elsewhere nothing is known. Cost: about 50 microseconds.
"""

from pathlib import Path

import torch

STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")
RESET_PEAK = "5"
"""What the kernel takes as "set the high-water mark to what is resident now"."""


def forget_peak(device: torch.device) -> None:
    """Begin a stretch."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    try:
        CLEAR.write_text(RESET_PEAK)
    except OSError:
        return


def peak(device: torch.device) -> float:
    """Bytes at most since `forget_peak`; NaN where the system does not say."""
    if device.type == "cuda":
        return float(torch.cuda.max_memory_allocated(device))
    try:
        lines = STATUS.read_text().splitlines()
    except OSError:
        return float("nan")
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return 1024.0 * int(found[0]) if found else float("nan")
