"""How a policy is trained: everything that shapes learning, in one record that a YAML file can hold."""

from __future__ import annotations

import difflib
import math
import numbers
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path

import yaml

from decima.exceptions import ConfigError, UnknownSchedulerError
from decima.training.recipes import RECIPES

_STOPS = ("iterations", "wall_seconds", "cpu_seconds")


def _number(default, low: float = 0.0, high: float = math.inf, *, above: bool = False, none: bool = False):
    """A real number from ``low`` (or only ``above`` it) to ``high``; with ``none``, None is allowed too."""
    return field(default=default, metadata={"low": low, "high": high, "above": above, "none": none, "whole": False})


def _whole(default, low: int, *, none: bool = False):
    """A whole number of at least ``low``."""
    return field(
        default=default, metadata={"low": low, "high": math.inf, "above": False, "none": none, "whole": True}
    )


def _choice(default: str, *options: str):
    return field(default=default, metadata={"options": options})


@dataclass(frozen=True)
class Recipe:
    """Everything that shapes learning. Times in seconds. The defaults are Algorithm 1 with the values of appendix C.

    An *iteration* draws ``sequences`` job sequences, runs each ``rollouts`` times and updates the weights.

    Attributes:
        name: What cards and logs call it.
        algorithm: ``"reinforce"`` (Algorithm 1) or ``"ppo"`` (clipped surrogate, several passes over the rollouts).
        sequences: Job sequences per iteration.
        rollouts: Episodes per sequence, N of Algorithm 1.
        lr_start: Adam's learning rate at the first iteration.
        lr_end: Learning rate at the end.
        lr_shape: ``"linear"``, ``"geometric"`` or ``"cosine"`` from start to end.
        lr_iterations: Iterations from start to end; None: over the whole budget.
        adam_beta1: Decay of Adam's first moment.
        adam_beta2: Decay of Adam's second moment.
        adam_epsilon: Adam's epsilon.
        gradient_norm: Gradients are scaled down to this norm; None: never.
        loss_reduction: ``"sum"`` over decisions per rollout (Algorithm 1) or ``"mean"`` over all decisions.
        entropy_start: Weight of the entropy bonus at the first iteration.
        entropy_end: Its weight at the end.
        entropy_iterations: Iterations of its linear decay; None: over the whole budget.
        effect_classes: Learn from the probability of all limits with the same effect instead of that of the one drawn;
            also the entropy counts effects.
        baseline: ``"time"``: mean return of the sequence's rollouts at the same time (Algorithm 1); ``"regression"``:
            plus a linear function of the state summary, fitted without the rollout it is used on.
        baseline_memory: Share of the regression's statistics kept from one iteration to the next; 0: none.
        baseline_ridge: Ridge penalty of the regression, relative to the variance of each column.
        trace_s: Time constant of the advantage's trace (lambda of GAE is exp(-dt / trace_s)); None: full returns.
        trace_end_s: The time constant grows geometrically to this one over the budget; None: it stays. Short traces
            have little noise while the policy is poor, but near the optimum they point elsewhere than the objective.
        horizon_s: Time constant of the discount, exp(-dt / horizon_s); None: undiscounted.
        normalise: Divide advantages by their standard deviation over ``"all"`` decisions or per ``"sequence"``;
            ``"raw"``: do not.
        reward_scale_s: Rewards are in units of this many job-seconds.
        differential: Subtract the average reward rate of the last ``differential_window`` decisions from the rewards of
            streams (appendix B). Differs: a rate per time, not per decision.
        differential_window: Decisions of that average.
        episode_start_s: Mean episode length of streams at the first iteration. The length of each is drawn anew
            (exponentially), so that the end cannot be foreseen. None: episodes run until all jobs are done. Batches
            always do.
        episode_end_s: Largest mean.
        episode_growth_s: Growth of the mean per iteration (line 13 of Algorithm 1); None: the probability of
            termination falls linearly from 1 / start to 1 / end over the budget (appendix C).
        epochs: Passes over the rollouts of an iteration (ppo and imitation).
        minibatches: Updates per pass (ppo and imitation).
        clip: Probability ratios are clipped to 1 -+ clip (ppo).
        kl_stop: No further updates in an iteration once the policy has moved this far (ppo); None: never.
        teacher: Scheduler to imitate first; None: start from random weights.
        teacher_parameters: Its parameters by name.
        teacher_iterations: Iterations of imitation; 0: none.
        teacher_sequences: Job sequences per iteration of imitation.
        teacher_rollouts: Episodes per sequence then; different sequences teach more than repeated ones.
        teacher_lr: Learning rate at its first iteration.
        teacher_lr_end: Learning rate at its last one; geometric in between.
        teacher_share_start: Probability that a decision of the teacher, not of the policy, is carried out, at first.
        teacher_share_end: The same at the end of imitation.
        validate_every: Iterations between validations.
        validation_sequences: Sequences of a validation; never used for training or tests.
        validation_seeds: Runs of the sampled policy per sequence; 0: only the greedy one.
        checkpoint_every: Iterations between checkpoints.
        iterations: Stop after so many iterations, imitation included; None: no such limit.
        wall_seconds: Stop after so many seconds.
        cpu_seconds: Stop after so many CPU seconds.

    Raises:
        ConfigError: A value is out of range; names it.
    """

    name: str = "paper"
    algorithm: str = _choice("reinforce", "reinforce", "ppo")
    sequences: int = _whole(1, 1)
    rollouts: int = _whole(16, 1)
    lr_start: float = _number(1e-3, above=True)
    lr_end: float = _number(1e-3)
    lr_shape: str = _choice("linear", "linear", "geometric", "cosine")
    lr_iterations: int | None = _whole(None, 1, none=True)
    adam_beta1: float = _number(0.9, 0.0, 0.999999)
    adam_beta2: float = _number(0.999, 0.0, 0.999999)
    adam_epsilon: float = _number(1e-8, above=True)
    gradient_norm: float | None = _number(None, above=True, none=True)
    loss_reduction: str = _choice("sum", "sum", "mean")
    entropy_start: float = _number(1.0)
    entropy_end: float = _number(1e-4)
    entropy_iterations: int | None = _whole(1000, 1, none=True)
    effect_classes: bool = False
    baseline: str = _choice("time", "time", "regression")
    baseline_memory: float = _number(0.0, 0.0, 0.9999)
    baseline_ridge: float = _number(1e-3, above=True)
    trace_s: float | None = _number(None, above=True, none=True)
    trace_end_s: float | None = _number(None, above=True, none=True)
    horizon_s: float | None = _number(None, above=True, none=True)
    normalise: str = _choice("raw", "raw", "all", "sequence")
    reward_scale_s: float = _number(100.0, above=True)
    differential: bool = True
    differential_window: int = _whole(100_000, 1)
    episode_start_s: float | None = _number(2000.0, above=True, none=True)
    episode_end_s: float | None = _number(20_000.0, above=True, none=True)
    episode_growth_s: float | None = _number(None, none=True)
    epochs: int = _whole(1, 1)
    minibatches: int = _whole(1, 1)
    clip: float = _number(0.2, above=True)
    kl_stop: float | None = _number(None, above=True, none=True)
    teacher: str | None = None
    teacher_parameters: dict[str, float] = field(default_factory=dict)
    teacher_iterations: int = _whole(0, 0)
    teacher_sequences: int = _whole(16, 1)
    teacher_rollouts: int = _whole(1, 1)
    teacher_lr: float = _number(1e-3, above=True)
    teacher_lr_end: float = _number(1e-3, above=True)
    teacher_share_start: float = _number(1.0, 0.0, 1.0)
    teacher_share_end: float = _number(0.0, 0.0, 1.0)
    validate_every: int = _whole(25, 1)
    validation_sequences: int = _whole(20, 1)
    validation_seeds: int = _whole(1, 0)
    checkpoint_every: int = _whole(25, 1)
    iterations: int | None = _whole(None, 1, none=True)
    wall_seconds: float | None = _number(None, above=True, none=True)
    cpu_seconds: float | None = _number(None, above=True, none=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ConfigError(f"recipe: name must be a text, got {self.name!r}")
        for item in fields(self):
            self._check(item.name, item.metadata, item.default)
        if not isinstance(self.teacher_parameters, dict):
            raise ConfigError(f"recipe: teacher_parameters must be a mapping, got {self.teacher_parameters!r}")
        if self.teacher is not None:
            self.make_teacher()
        if self.trace_end_s is not None and self.trace_s is None:
            raise ConfigError("recipe: trace_end_s needs trace_s, where it starts")
        if self.lr_shape == "geometric" and self.lr_end == 0.0:
            raise ConfigError("recipe: lr_end must be above 0 for lr_shape geometric")
        if self.episode_start_s is not None and (self.episode_end_s or 0.0) < self.episode_start_s:
            raise ConfigError(
                f"recipe: episode_end_s must be at least episode_start_s ({self.episode_start_s:g}), "
                f"got {self.episode_end_s!r}"
            )
        if self.algorithm == "reinforce" and (self.epochs, self.minibatches) != (1, 1) and not self.imitates:
            raise ConfigError("recipe: epochs and minibatches need algorithm ppo; reinforce uses its rollouts once")

    def _check(self, name: str, rule, default) -> None:
        value = getattr(self, name)
        if "options" in rule:
            if value not in rule["options"]:
                raise ConfigError(f"recipe: {name} must be one of {', '.join(rule['options'])}, got {value!r}")
        elif "low" in rule:
            if value is None and rule["none"]:
                return
            valid = isinstance(value, numbers.Real) and not isinstance(value, bool) and math.isfinite(value)
            valid = valid and (value > rule["low"] if rule["above"] else value >= rule["low"]) and value <= rule["high"]
            valid = valid and (not rule["whole"] or value == int(value))
            if not valid:
                kind = "a whole number" if rule["whole"] else "a number"
                bound = f"above {rule['low']:g}" if rule["above"] else f"of at least {rule['low']:g}"
                top = f" and at most {rule['high']:g}" if rule["high"] < math.inf else ""
                allowed = " (or none)" if rule["none"] else ""
                raise ConfigError(f"recipe: {name} must be {kind} {bound}{top}{allowed}, got {value!r}")
            object.__setattr__(self, name, int(value) if rule["whole"] else float(value))
        elif isinstance(default, bool) and not isinstance(value, bool):
            raise ConfigError(f"recipe: {name} must be true or false, got {value!r}")

    def make_teacher(self):
        """The scheduler to imitate.

        Raises:
            ConfigError: There is none of that name, a parameter is wrong, or it is no compiled heuristic.
        """
        from decima.schedulers import CompiledScheduler, make_scheduler

        try:
            made = make_scheduler(self.teacher, **self.teacher_parameters)
        except (ConfigError, UnknownSchedulerError) as error:
            raise ConfigError(f"recipe: teacher: {error}") from error
        if not isinstance(made, CompiledScheduler):
            raise ConfigError(f"recipe: teacher must be a compiled heuristic, got {self.teacher!r}")
        return made

    @property
    def imitates(self) -> bool:
        """Whether training begins with imitation."""
        return self.teacher is not None and self.teacher_iterations > 0

    @property
    def has_stop(self) -> bool:
        """Whether training would end by itself."""
        return any(getattr(self, name) is not None for name in _STOPS)

    def replace(self, **changes) -> Recipe:
        """A copy with some fields changed.

        Raises:
            ConfigError: A name is unknown or a value out of range.
        """
        return replace(self, **_complete(changes))

    def as_dict(self) -> dict:
        """Fields by name, JSON-ready."""
        return asdict(self)

    def without_stops(self) -> dict:
        """Fields that a resumed run must share with the one it continues."""
        return {name: value for name, value in self.as_dict().items() if name not in _STOPS}

    def to_yaml(self) -> str:
        """Text that :meth:`load` reads."""
        return yaml.safe_dump(self.as_dict(), sort_keys=False)

    @classmethod
    def named(cls, recipe: str, kind: str = "batch", /, **changes) -> Recipe:
        """A recipe of :data:`RECIPES`, some fields replaced.

        Args:
            recipe: Its name; ``"fast"`` stands for ``"fast-batch"`` or ``"fast-stream"``.
            kind: Kind of task that ``"fast"`` is for.
            **changes: Fields.
        """
        name = f"fast-{kind}" if recipe == "fast" else recipe
        if name not in RECIPES:
            known = ", ".join(["fast", *RECIPES])
            raise ConfigError(f"unknown recipe {recipe!r}; known: {known}, or the path of a .yaml file")
        return cls(**({"name": name} | RECIPES[name] | _complete(changes)))

    @classmethod
    def load(cls, path: str | Path, kind: str = "batch") -> Recipe:
        """Read a YAML file of fields; ``base: fast`` starts from a named recipe instead of the defaults.

        Args:
            path: The file.
            kind: As in :meth:`named`.

        Raises:
            ConfigError: The file cannot be read, is no mapping, or holds an unknown name or a bad value.
        """
        path = Path(path)
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"cannot read recipe {path}: {error.strerror or error}") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise ConfigError(f"recipe {path} is no YAML: {' '.join(str(error).split())}") from error
        if not isinstance(content, dict):
            raise ConfigError(f"recipe {path} must hold fields and values, got {type(content).__name__}")
        base = content.pop("base", "paper")
        content = {key: parse_value(value) if isinstance(value, str) else value for key, value in content.items()}
        try:
            return cls.named(base, kind, **({"name": path.stem} | content))
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error

    @classmethod
    def of(cls, name: str, pairs: list[str] | tuple[str, ...] = (), kind: str = "batch") -> Recipe:
        """A named recipe or YAML file, some fields replaced by ``key=value`` texts as a command line gives them.

        Args:
            name: Name or path.
            pairs: The texts.
            kind: As in :meth:`named`.

        Raises:
            ConfigError: A text is not of that form, a name is unknown or a value out of range.
        """
        recipe = cls.load(name, kind) if name.endswith((".yaml", ".yml")) else cls.named(name, kind)
        changes: dict = {}
        for pair in pairs:
            key, sign, text = pair.partition("=")
            if not sign or not key:
                raise ConfigError(f"{pair!r}: expected KEY=VALUE, for example lr_start=0.002")
            changes[key] = parse_value(text)
        return recipe.replace(**changes)


def parse_value(text: str):
    """A number, truth value, text, mapping or None written as in YAML; ``1e-3`` is a number, ``none`` is None."""
    try:
        value = yaml.safe_load(text)
    except yaml.YAMLError:
        return text
    if isinstance(value, str):
        if value.lower() == "none":
            return None
        try:  # YAML takes 1e-3 for a text
            return float(value)
        except ValueError:
            return value
    return value


def _complete(changes: dict) -> dict:
    """Checked names; with another teacher, the parameters of the former one do not stay."""
    known = [item.name for item in fields(Recipe)]
    for name in changes:
        if name not in known:
            close = difflib.get_close_matches(str(name), known, n=1)
            hint = f"; did you mean {close[0]!r}?" if close else f"; known: {', '.join(known)}"
            raise ConfigError(f"recipe: unknown field {name!r}{hint}")
    return ({"teacher_parameters": {}} if "teacher" in changes else {}) | changes
