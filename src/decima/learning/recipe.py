"""Recipe of training: a budget and configurations of algorithms in one YAML-compatible record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, get_type_hints

from decima.core.errors import ConfigError
from decima.core.files import read_yaml
from decima.core.grammar import hint, read_value
from decima.core.registry import Registry
from decima.learning.algorithms import ALGORITHMS, Algorithm, make_algorithm
from decima.learning.algorithms.imitation import ImitationConfig
from decima.learning.algorithms.interface import Phase, Phases
from decima.learning.algorithms.policy_gradient import PolicyGradientConfig
from decima.learning.configuration import Budget, Configuration, choice

# Named recipes, as fields that differ from the defaults; systems register theirs.
RECIPES: Registry[Mapping[str, Any]] = Registry(
    "recipe",
    others="fast (the one for the kind of task), or the path of a .yaml file",
    group="decima.recipes",
    adopt=lambda name, item: {"name": name} | dict(item),
)
RECIPES.add("paper", {})
#: What the fast recipes of all systems share.
FAST: dict[str, Any] = {
    "algorithm": "ppo",
    "epochs": 2,
    "minibatches": 4,
    "lr_shape": "geometric",
    "gradient_norm": 1.0,
    "loss_reduction": "mean",
    "entropy_start": 0.0,
    "entropy_end": 0.0,
    "entropy_iterations": None,
    "effect_classes": True,
    "baseline": "regression",
    "baseline_memory": 0.9,
    "episode_start_s": None,
    "differential": False,
    "rollouts": 8,
    "validate_every": 10,
}


def register_recipe(name: str, **values: Any) -> None:
    """Make a recipe known.

    Args:
        name: Its name; ``"fast-KIND"`` is what ``fast`` means for tasks of a kind.
        **values: Flat fields that differ from the defaults.
    """
    RECIPES.add(name, values)


COMPILED, TENSORFLOW = "compiled", "tensorflow"  # what computes gradients


@dataclass(frozen=True)
class AdamConfig(Configuration):
    """What computes the gradients of which Adam takes steps."""

    gradient: str = choice(
        "What differentiates Decima's network: compiled, or tensorflow (the Keras model with Spektral's layers; about "
        "twice as long, other last digits). The networks of other systems are TensorFlow's in any case.",
        COMPILED,
        TENSORFLOW,
    )


# Fields of earlier versions, with the only value that this one has.
GONE = {
    "teacher_rollouts": 1,
    "teacher_share_start": 1.0,
    "baseline_ridge": 1e-3,
    "differential_window": 100_000,
    "kl_stop": None,
    "lr_iterations": None,
    "rollouts_end": None,
    "adam_beta1": 0.9,
    "adam_beta2": 0.999,
    "adam_epsilon": 1e-8,
    "loss": "squared",
}


@dataclass(frozen=True)
class Recipe:
    """Everything that shapes learning, by default Algorithm 1 with the values of appendix C.

    Times are in seconds. Outside, a recipe is flat: in files, on the command line, in cards and for :meth:`of_fields` a
    field is given by its name alone; one that several parts have is the same for all of them. :meth:`documentation`
    lists all fields.

    Raises:
        ConfigError: The parts contradict each other.
    """

    name: str = "paper"  # what cards and logs call it
    algorithm: str = "reinforce"  # registered algorithm that trains, after imitation if there is a teacher
    budget: Budget = field(default_factory=Budget)  # when to stop, to validate and to write checkpoints
    adam: AdamConfig = field(default_factory=AdamConfig)  # what computes gradients
    imitation: ImitationConfig = field(default_factory=ImitationConfig)  # warm start
    learning: Configuration = field(default_factory=PolicyGradientConfig)  # configuration of the algorithm

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ConfigError(f"recipe: name must be a text, got {self.name!r}")
        for part in self.parts:
            part.check_beside(self)

    @property
    def parts(self) -> tuple[Configuration, ...]:
        """The checked records that it consists of."""
        return self.budget, self.adam, self.imitation, self.learning

    @property
    def imitates(self) -> bool:
        """Whether training begins with imitation."""
        return self.imitation.wanted and self.algorithm != "imitation"

    def make_algorithm(self, agent, seed: int) -> Algorithm:
        """The algorithm, after imitation if the recipe wants it."""
        phases = [Phase(self.algorithm, make_algorithm(self.algorithm, self.learning, agent, seed))]
        if self.imitates:
            warm = make_algorithm("imitation", self.imitation, agent, seed)
            phases.insert(0, Phase("imitation", warm, self.imitation.teacher_iterations))
        return Phases(phases)

    # ---- flat fields --------------------------------------------------------------------------------------------

    @classmethod
    def of_fields(cls, **values) -> Recipe:
        """A recipe from its flat fields.

        Raises:
            ConfigError: A name is unknown, a value out of range, or values contradict each other.
        """
        name, algorithm = values.pop("name", "paper"), values.pop("algorithm", "reinforce")
        values = {key: value for key, value in values.items() if GONE.get(key, ...) != value}
        parts = _parts(algorithm)
        known = _known(parts)
        for key in values:
            if key in GONE:
                raise ConfigError(f"recipe: {key} is gone; version 0.2.0 or older has it")
            if key not in known:
                raise ConfigError(f"recipe: unknown field {key!r}{hint(key, known) or '; known: ' + ', '.join(known)}")
        configurations = []
        for part in parts:
            names = {item.name for item in fields(part)}
            of_algorithm = {"algorithm": algorithm} if "algorithm" in names else {}
            configurations.append(
                part(**({key: value for key, value in values.items() if key in names} | of_algorithm))
            )
        return cls(name, algorithm, *configurations)

    def as_dict(self) -> dict:
        """Flat fields by name, JSON-ready."""
        values = {"name": self.name, "algorithm": self.algorithm}
        for part in self.parts:
            values |= asdict(part)
        return values

    def without_limits(self) -> dict:
        """Flat fields that a resumed run must share with the one it continues."""
        usual = {"gradient": COMPILED}  # runs from before there was a choice resume, too
        values = self.as_dict().items()
        return {name: value for name, value in values if name not in Budget.LIMITS and usual.get(name, ...) != value}

    def replace(self, **changes) -> Recipe:
        """Copy with some flat fields changed; a new teacher discards what described the former one.

        With another algorithm, fields that it does not know are dropped.

        Raises:
            ConfigError: A name is unknown or a value out of range.
        """
        values = self.as_dict()
        if changes.get("algorithm", self.algorithm) != self.algorithm:
            known = _known(_parts(changes["algorithm"]))
            values = {key: value for key, value in values.items() if key in known}
        former = {"teacher_parameters": {}, "teacher_idles": False} if "teacher" in changes else {}
        return Recipe.of_fields(**(values | former | changes))

    @staticmethod
    def documentation(algorithm: str = "reinforce") -> dict[str, str]:
        """Documentation of every flat field, by name.

        Args:
            algorithm: Whose fields to list in addition to those of all recipes.
        """
        documents = {"name": "What cards and logs call it.", "algorithm": "Registered algorithm that trains."}
        return documents | {item.name: item.metadata["doc"] for part in _parts(algorithm) for item in fields(part)}

    # ---- where recipes come from --------------------------------------------------------------------------------

    @classmethod
    def named(cls, recipe: str, task: str = "batch", /, **changes) -> Recipe:
        """A recipe of :data:`RECIPES`, some fields replaced.

        Args:
            recipe: Its name; ``"fast"`` stands for ``"fast-batch"`` where the kind is ``"batch"``, and so on.
            task: Kind of task that it is for; a recipe of that kind goes before one of the name alone.
            **changes: Flat fields.
        """
        name = f"{recipe}-{task}" if f"{recipe}-{task}" in RECIPES else recipe
        return cls.of_fields(**({"name": name} | RECIPES.find(name))).replace(**changes)

    @classmethod
    def load(cls, path: str | Path, task: str = "batch") -> Recipe:
        """Read flat fields from YAML; ``base: fast`` starts from a recipe instead of the defaults.

        Args:
            path: The file.
            task: As in :meth:`named`.

        Raises:
            ConfigError: The file cannot be read, is not a mapping, or holds an unknown name or a bad value.
        """
        path, content = Path(path), read_yaml(path)
        base = content.pop("base", "paper")
        try:
            return cls.named(base, task, **({"name": path.stem} | _typed(content)))
        except ConfigError as error:
            raise ConfigError(f"{path}: {error}") from error

    @classmethod
    def of(cls, name: str | Recipe, texts: Mapping[str, str] | None = None, task: str = "batch") -> Recipe:
        """Recipe by name or YAML file, with flat fields replaced by command-line texts.

        Args:
            name: Name, path, or a recipe.
            texts: Texts by name of the field.
            task: As in :meth:`named`.

        Raises:
            ConfigError: A name is unknown, or a value of another type or out of range.
        """
        if isinstance(name, Recipe):
            recipe = name
        else:
            recipe = cls.load(name, task) if name.endswith((".yaml", ".yml")) else cls.named(name, task)
        return recipe.replace(**_typed(texts or {}, recipe.algorithm))


def _typed(values: Mapping[str, Any], algorithm: str = "reinforce") -> dict[str, Any]:
    """Values of flat fields; texts are read by the type of their field."""
    types: dict[str, Any] = {}
    for part in _parts(values.get("algorithm", algorithm)):
        types |= get_type_hints(part)
    return {
        key: read_value(value, types[key], f"recipe: {key}") if isinstance(value, str) and key in types else value
        for key, value in values.items()
    }


def _parts(algorithm: str) -> tuple[type[Configuration], ...]:
    return Budget, AdamConfig, ImitationConfig, ALGORITHMS.find(algorithm).configuration


def _known(parts: tuple[type[Configuration], ...]) -> list[str]:
    return list(dict.fromkeys(["name", "algorithm", *(item.name for part in parts for item in fields(part))]))
