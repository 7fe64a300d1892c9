"""Notes that are logged once, however many adapters have them to say."""

import logging


class Once(logging.Filter):
    """Lets every message through once; what is filled into its text does not count."""

    def __init__(self) -> None:
        super().__init__()
        self._messages: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether this is the first record with its message."""
        first = record.msg not in self._messages
        self._messages.add(record.msg)
        return first


def once() -> logging.Logger:
    """Return the logger of notes that are logged once in a process."""
    logger = logging.getLogger("haptera.once")
    if not any(isinstance(each, Once) for each in logger.filters):
        logger.addFilter(Once())
    return logger
