"""What views ask of a run, kept as long as the run does not change."""

from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from inspector.run import Run

P = ParamSpec("P")
T = TypeVar("T")

MOST = 96  # answers kept for each run; the one used longest ago goes first
_kept: "WeakKeyDictionary[Run, tuple[int, OrderedDict[Any, Any]]]" = WeakKeyDictionary()


def ask(
    question: "Callable[Concatenate[Run, P], T]", run: "Run", *args: P.args, **kwargs: P.kwargs
) -> T:
    """Return `question(run, ...)`, computed once until the run has something new.

    All viewers of a run share the answers, so nobody may change one.

    Args:
        question: a function of `inspector.queries`, or a method of `Run` as `Run.instances`.
        args, kwargs: further arguments, hashable.
    """
    version, answers = _kept.get(run, (-1, OrderedDict()))
    if version != run.version:
        version, answers = run.version, OrderedDict()
        _kept[run] = (version, answers)
    key = (question.__module__, question.__qualname__, args, tuple(sorted(kwargs.items())))
    with suppress(KeyError):  # another viewer may have made room in between
        answers.move_to_end(key)
        return answers[key]
    answer = answers[key] = question(run, *args, **kwargs)
    with suppress(KeyError):
        while len(answers) > MOST:
            answers.popitem(last=False)
    return answer
