"""Timeline: which step and time an image came at, in flat memory: the older, the fewer entries are kept."""

from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

MOST = 512


class Timeline:
    """Steps and times by the number of the first image that came with them."""

    def __init__(self) -> None:
        self._images: list[int] = []
        self._steps: list[int] = []
        self._times: list[float] = []

    def add(self, image: int, step: int, time: float) -> None:
        """Note that an image, and those after it, came at a step; when it is full, every second old entry goes."""
        if len(self._images) >= MOST:
            for values in (self._images, self._steps, self._times):
                del values[1 : MOST // 2 : 2]
        self._images.append(image)
        self._steps.append(int(step))
        self._times.append(float(time))

    def at(self, image: int) -> tuple[int, float]:
        """Return the last noted step and time at or before an image."""
        place = max(bisect_right(self._images, image) - 1, 0)
        return self._steps[place], self._times[place]

    def state(self) -> dict[str, Any]:
        """Return what was noted."""
        return {"images": list(self._images), "steps": list(self._steps), "times": list(self._times)}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a state."""
        self._images = [int(each) for each in state["images"]]
        self._steps = [int(each) for each in state["steps"]]
        self._times = [float(each) for each in state["times"]]
