"""State of a parameter as a dict that tells when somebody writes to it."""

from collections.abc import Callable
from typing import Any, final


@final
class Flag:
    """Raised by every dict that watches for it."""

    __slots__ = ("raised",)

    def __init__(self) -> None:
        self.raised = False


@final
class WatchedDict(dict[str, Any]):
    """A dict which raises a flag when it is changed, so that nobody has to look at all of them.

    Copies and pickles of it are plain dicts.
    """

    __slots__ = ("_flag",)

    def __init__(self, entries: dict[str, Any], flag: Flag) -> None:
        super().__init__(entries)
        self._flag = flag

    @classmethod
    def of(cls, entries: dict[str, Any], flag: Flag) -> "WatchedDict":
        """Return these entries as a dict that raises `flag`: the same object, if it can."""
        if not isinstance(entries, WatchedDict):
            return cls(entries, flag)
        entries._flag = flag
        return entries

    def __reduce__(self) -> tuple[Callable[..., dict[str, Any]], tuple[dict[str, Any]]]:
        return dict, (dict(self),)

    def __setitem__(self, key: str, value: Any) -> None:
        self._flag.raised = True
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        self._flag.raised = True
        super().__delitem__(key)

    def __ior__(self, other: Any) -> Any:
        self._flag.raised = True
        return super().__ior__(other)

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return an entry, made first where it is missing."""
        self._flag.raised = True
        return super().setdefault(key, default)

    def update(self, *args: Any, **kwargs: Any) -> None:
        """Write several entries."""
        self._flag.raised = True
        super().update(*args, **kwargs)

    def pop(self, *args: Any) -> Any:
        """Remove and return an entry."""
        self._flag.raised = True
        return super().pop(*args)

    def popitem(self) -> tuple[str, Any]:
        """Remove and return the last entry."""
        self._flag.raised = True
        return super().popitem()

    def clear(self) -> None:
        """Remove all entries."""
        self._flag.raised = True
        super().clear()
