"""The part of the recorder that a training talks to: iterations, numbers, what it watches."""

import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn
from torch.optim import Optimizer

from inspector import records
from inspector.iterations import Ending, Iterations, Samples
from inspector.store.progress import last_iteration
from inspector.store.writer import RunWriter
from inspector.watching import ModelWatch, OptimizerWatch
from solver.hooks import Hook


class TrainingRecorder(Hook):
    """Base of `Inspector`: all that is told by the training and not by the solver."""

    path: Path
    _writer: RunWriter | None

    def _begin_training(self) -> None:
        """Set up without a writer: nothing is recorded."""
        self._logged = 0
        self._last: int | None = None  # iteration that earlier writers of the run came to
        self._iterations = Iterations(None)
        self._watched: list[OptimizerWatch | ModelWatch] = []
        self._told: set[str] = set()

    def _begin_recording(self, writer: RunWriter) -> None:
        """Record from now on."""
        me = weakref.ref(self)

        def before() -> int:
            recorder = me()
            return -1 if recorder is None else recorder.last_recorded

        def ending() -> None:
            recorder = me()
            if recorder is not None:
                recorder._look_at_models()

        self._iterations = Iterations(writer, before)
        self._iterations.on_end.append(ending)

    @property
    def last_recorded(self) -> int:
        """The last iteration that this rank recorded into the run before now; -1 if none."""
        if self._last is None:
            rank = records.place()["rank"]
            own = None if self._writer is None else self._writer.token
            self._last = last_iteration(self.path, rank, own)
        return self._last

    def iteration(
        self,
        step: int | None = None,
        *,
        sample_ids: Tensor | np.ndarray | Iterable[Any] | None = None,
        epoch: float | None = None,
    ) -> Ending:
        """Say which iteration of the training comes next; what follows belongs to it.

        Call it alone, or as `with insp.iteration() as step`, or leave it to `step`. Without `step`
        it counts by one, and a resumed run goes on where it stood. Its times, and what the solves
        and whatever is watched tell, are written when it ends.

        Args:
            step: number of the iteration.
            sample_ids: which sample of a data set each row is, whole numbers or words; told of all
                solves in the iteration that have so many rows.
            epoch: logged beside the rest.

        Raises:
            TypeError, ValueError: a number or the ids are not what they must be.
        """
        samples = None if sample_ids is None else Samples(sample_ids)
        ending = self._iterations.begin(step, samples)
        if epoch is not None:
            self.log(epoch=epoch)
        return ending

    def step(
        self, *, sample_ids: Tensor | np.ndarray | Iterable[Any] | None = None, **scalars: Any
    ) -> int:
        """Log numbers, end the iteration and begin the next; to be called at the end of each.

        Args:
            sample_ids: of the rows of the iteration that begins, see `iteration`.
            scalars: numbers of the iteration that ends, see `log`.

        Returns:
            The number of the iteration that begins.

        Raises:
            TypeError, ValueError: a value is no number, or the ids are not what they must be.
        """
        samples = None if sample_ids is None else Samples(sample_ids)
        if self._iterations.number is None:
            self._iterations.begin(None, first_solve=0)
        if scalars:
            self.log(**scalars)
        self._iterations.begin(None, samples)
        number = self._iterations.number
        assert number is not None
        return number

    def log(self, **scalars: Any) -> None:
        """Record named numbers, such as `loss=...`: Python numbers or tensors with one element.

        They belong to the current `iteration`, or to the number of this call if there is none. A
        tensor on a device is not waited for.

        Raises:
            TypeError: a value is no number.
        """
        values = {name: records.scalar(name, value) for name, value in scalars.items()}
        iteration = self._iterations.number
        if iteration is None:
            iteration, self._logged = self._logged, self._logged + 1
        if self._writer is not None:
            self._writer.scalars(iteration, values)

    def event(self, kind: str, text: str, **data: Any) -> None:
        """Record something that happens rarely, such as a change of the learning rate."""
        if self._writer is not None:
            at = self._iterations.number
            self._writer.event(kind, text, **({} if at is None else {"iteration": at}) | data)

    def note(self, text: str) -> None:
        """Record a remark, with the iteration it was made in."""
        self.event("note", text)

    def tag(self, *tags: str) -> None:
        """Put words on the run, by which it is found in the list of runs."""
        if self._writer is not None:
            self._writer.add_tags([str(tag) for tag in tags])

    def watch(self, *things: Optimizer | nn.Module, every: int = 10) -> None:
        """Record what optimizers and models tell about each step.

        Of an optimizer: norm of the gradient and learning rates of each step; in each tenth norm of
        the parameters, the update as a share of it, and the statistics it offers (those of
        `solver.optim`: effective step size, agreement of signs, diagonal of the Hessian). Of a
        model: in each tenth step the norm of the gradients of each part, and always the name of
        the parameter whose gradient is not finite. Nothing is put on a model; an optimizer gets
        step hooks, which are no part of its state. Watching twice is the same as once; `unwatch`
        and `close` undo it.

        Args:
            things: optimizers and models.
            every: step in which what costs a pass over parameters or state is measured.

        Raises:
            TypeError: it is neither.
            ValueError: `every` is below 1.
        """
        if isinstance(every, bool) or not isinstance(every, int) or every < 1:
            raise ValueError(f"every={every!r}: must be a whole number of at least 1")
        for thing in things:
            if not isinstance(thing, Optimizer | nn.Module):
                raise TypeError(
                    f"watch got a {type(thing).__name__}: must be a torch optimizer or module"
                )
            if self._writer is None or any(watch.of(thing) for watch in self._watched):
                continue
            if isinstance(thing, Optimizer):
                self._watch_optimizer(thing, every)
            else:
                self._watched.append(ModelWatch(thing, every))

    def unwatch(self, *things: Optimizer | nn.Module) -> None:
        """Leave optimizers and models as they were; all of them if none is named."""
        for watch in list(self._watched):
            if not things or any(watch.of(thing) for thing in things):
                self._watched.remove(watch)
                if isinstance(watch, OptimizerWatch):
                    watch.close()

    def _watch_optimizer(self, optimizer: Optimizer, every: int) -> None:
        number = 1 + sum(isinstance(watch, OptimizerWatch) for watch in self._watched)
        me = weakref.ref(self)  # the optimizer must not keep the recorder

        def before() -> None:
            recorder = me()
            if recorder is not None:
                recorder._iterations.about_to_step()

        def after(values: Any) -> None:
            recorder = me()
            if recorder is not None:
                recorder._iterations.note(values)
                recorder._look_at_models()
                recorder._iterations.stepped()

        def names(parameter: Tensor) -> str:
            recorder = me()
            watched = [] if recorder is None else recorder._watched
            found = (w.name(parameter) for w in watched if isinstance(w, ModelWatch))
            return next((name for name in found if name), "")

        def event(kind: str, text: str) -> None:
            recorder = me()
            if recorder is not None and kind not in recorder._told:
                recorder._told.add(kind)
                recorder.event(kind, text)

        suffix = "" if number == 1 else f"_{number}"
        self._watched.append(OptimizerWatch(optimizer, suffix, every, before, after, names, event))
        group = optimizer.param_groups[0] if optimizer.param_groups else {}
        settings = {
            name: value for name, value in group.items()
            if name != "params" and isinstance(value, bool | int | float | str | tuple)
        }  # fmt: skip
        self.event("optimizer", type(optimizer).__name__, settings=settings)

    def _look_at_models(self) -> None:
        """Take the norms of the gradients of watched models, once an iteration."""
        at = self._iterations.current
        for watch in self._watched:
            if isinstance(watch, ModelWatch) and watch.is_due(at):
                try:
                    self._iterations.note(watch.gradients())
                except Exception as error:  # an odd model must not end a training
                    self._watched.remove(watch)
                    self.event("watch", f"the model is no longer watched: {error}")
                    return

    def attach_torchdiffeq(self, func: Any) -> Callable[[], None]:
        """Record every solve of `torchdiffeq.odeint(func, ...)`, see `adapters.torchdiffeq.attach`.

        Returns:
            A function that detaches again.
        """
        from inspector.adapters.torchdiffeq import attach

        return attach(self, func)

    def attach_torchode(self, solver: Any) -> Callable[[], None]:
        """Record every solve of a torchode solver, see `adapters.torchode.attach`.

        Returns:
            A function that detaches again.
        """
        from inspector.adapters.torchode import attach

        return attach(self, solver)

    def lightning(self, sample_ids: Callable[[Any], Any] | None = None) -> Any:
        """Return a callback for Lightning's trainer, see `adapters.lightning.callback`."""
        from inspector.adapters.lightning import callback

        return callback(self, sample_ids)


def checked_tags(tags: Iterable[str]) -> list[str]:
    """Return the tags of a run.

    Raises:
        TypeError: they are no words in a list.
    """
    listed = [tags] if isinstance(tags, str) else list(tags)
    for tag in listed:
        if not isinstance(tag, str):
            raise TypeError(f"tags holds {tag!r}: must be words")
    return listed
