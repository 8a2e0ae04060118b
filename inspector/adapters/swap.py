"""Methods of an object seen from outside, with nothing added to the object that a copy would keep.

The object gets a class of its own that inherits from the one it had. Copies and pickles have the
class it had before, so they are not watched, and its `state_dict` and attributes stay as they were.
"""

from collections.abc import Callable, Mapping
from typing import Any


def swap(thing: Any, methods: Mapping[str, Callable[..., Any]]) -> Callable[[], None]:
    """Put methods over those an object has; each is called as `method(original, *args, **kwargs)`.

    Returns:
        A function that takes them away again.

    Raises:
        TypeError: the object cannot have another class.
    """
    base = type(thing)

    def around(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        original = getattr(base, name)

        def called(self: Any, *args: Any, **kwargs: Any) -> Any:
            return method(original.__get__(self), *args, **kwargs)

        return called

    def reduced(self: Any, protocol: Any) -> Any:
        _, arguments, *rest = super(watched, self).__reduce_ex__(protocol)
        return (_new, tuple(base if each is watched else each for each in arguments), *rest)

    body: dict[str, Any] = {name: around(name, method) for name, method in methods.items()}
    body |= {"__reduce_ex__": reduced, "__module__": base.__module__}
    watched = type(base.__name__, (base,), body)
    thing.__class__ = watched

    def undo() -> None:
        if type(thing) is watched:
            thing.__class__ = base

    return undo


def _new(cls: type, *arguments: Any) -> Any:
    """Make a copy's object, which a pickle refuses to do for an object of another class."""
    return cls.__new__(cls, *arguments)
