"""What an experiment file may say, and what each of its fields means.

The sections know their own fields. Where a section names something from a registry (a process, a
partition, a model, a method), that thing's options stand in the same table and are checked against
its signature; see `turnout.experiments.options`.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

from turnout.errors import InputError, require

Whole = Annotated[int, Field(ge=1)]
Share = Annotated[float, Field(ge=0, le=1)]


class Section(BaseModel):
    """A table of the file that knows all its keys."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class OpenSection(Section):
    """A table that also holds the options of what it names."""

    model_config = ConfigDict(extra="allow")

    @property
    def options(self) -> dict[str, Any]:
        return dict(self.model_extra or {})


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class RunSection(Section):
    """How long, how often, how exactly."""

    name: str = Field(default="run", description="what the run directory is called")
    rounds: Whole = Field(description="rounds of every run")
    seeds: list[int] = Field(
        default=[0],
        description="one run of every method for each seed; a seed draws the start, mini-batches and "
        "assistance, and data and participation too where they have no seed of their own",
    )
    engine: str = Field(
        default="auto",
        description="what trains the clients: reference, batched, threaded, compiled; auto: the best "
        "for the model, by a trial where a run is long enough",
    )
    precision: Literal["bf16"] | None = Field(
        default=None,
        description="bf16: products and convolutions of local training in bfloat16, faster and less "
        "exact; none: as dtype says",
    )
    dtype: Literal["float32", "float64"] = Field(
        default="float32", description="type of the model's numbers"
    )
    threads: Whole | None = Field(
        default=None,
        description="torch's threads inside an operation; 1 is fastest for small models; none: as "
        "torch has it",
    )
    evaluate_every: Whole = Field(default=10, description="rounds between evaluations on test data")
    clients_every: Whole | None = Field(
        default=None,
        description="rounds between evaluations on the clients' own data; none: as often as on test "
        "data",
    )
    client_samples: Whole | None = Field(
        default=None, description="evaluate clients on their first so many samples; none: on all"
    )
    tail: Whole = Field(
        default=200, description="rounds at the end over which tables average accuracy"
    )
    checkpoint_seconds: float = Field(
        30.0,
        ge=0,
        description="seconds between checkpoints, more where they cost over 4 % of the time; 0: after "
        "every round",
    )
    table_limit: float = Field(
        1.0,
        ge=0,
        description="gigabytes up to which a table with a vector for each client (mifa, fedvarp, "
        "scaffold) is in memory; a larger one is a file in the run directory",
    )
    plots: bool = Field(
        default=True, description="save plots and, of several cells, a report in the run directory"
    )
    track: Annotated[list[Literal["tensorboard", "mlflow", "wandb"]], BeforeValidator(_listed)] = (
        Field(default=[], description="trackers that are told the metrics as they come, too")
    )

    @field_validator("seeds")
    @classmethod
    def _different(cls, seeds: list[int]) -> list[int]:
        right = "one or more whole numbers from 0 to 2⁶³ − 1, all different"
        good = bool(seeds) and len(set(seeds)) == len(seeds)
        good = good and min(seeds) >= 0 and max(seeds) < 2**63
        require(good, "run.seeds", seeds, right)
        return seeds


class PartitionSection(OpenSection):
    """Who gets which samples; further keys are the partition's options (alpha, classes_each, …)."""

    name: str = Field(default="iid", description="iid, dirichlet, shards, similarity or natural")
    clients: Whole | None = Field(
        default=None, description="population N; a natural partition brings its own"
    )


class AuxiliarySection(Section):
    """The server's own samples, taken away from the training data."""

    size: Whole = Field(description="number of samples")
    mix: list[float] | None = Field(
        default=None,
        description="share of each class, where the server's data are shifted; none: a plain draw",
    )
    shared: bool = Field(
        default=False, description="leave the clients their copies of these samples"
    )
    mixed: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="data sharing: every client gets copies of this share of these samples",
    )


class DataSection(OpenSection):
    """A data set; further keys are its columns (image, features) or a problem's own (z, dim)."""

    name: str = Field(
        default="digits",
        description="one of `turnout list datasets`, a folder, or owner/name on the Hub; or one of "
        "the problems quadratics and least_squares",
    )
    folder: str | None = Field(
        default=None, description="where folders of data sets lie; none: $TURNOUT_DATA"
    )
    partition: PartitionSection | None = Field(default=None, description="who gets which samples")
    auxiliary: AuxiliarySection | None = Field(default=None, description="the server's own samples")
    validation: Whole | None = Field(
        default=None,
        description="training samples that nobody trains on, for evaluation in place of the test data",
    )
    shares: Literal["equal", "samples"] | list[float] = Field(
        default="equal",
        description="weights q_n of the clients in the objective: equal, by samples, a list",
    )
    augmentation: str | None = Field(default=None, description="crop or crop_flip, for images")
    seed: int | None = Field(
        default=None, ge=0, description="of the partition and auxiliary set; none: the run's seed"
    )


class RatesSection(Section):
    """p_n = ⟨class mix of n, q⟩ · C · mean, with one q ~ Dir(alpha), as in FedAU's experiments."""

    alpha: float = Field(
        default=0.1, gt=0, description="α_p: the smaller, the fewer classes come often"
    )
    mean: float = Field(default=0.1, gt=0, le=1, description="about the mean of the rates")
    floor: Share | None = Field(
        default=0.02, description="least rate; none: rates may be next to 0"
    )


class ParticipationSection(OpenSection):
    """Who shows up; further keys are options of the process (p, per_round, period, path, …)."""

    process: str = Field(default="always", description="one of `turnout list participation`")
    rates: RatesSection | None = Field(
        default=None, description="rates p_n that follow from the clients' classes, in place of p"
    )
    sampled: Whole | None = Field(
        default=None, description="ask so many of those available, by random permutations"
    )
    absent: int | list[int] | None = Field(
        default=None, description="clients that never come: how many (drawn once), or which"
    )
    absent_classes: int | list[int] | None = Field(
        default=None,
        description="clients with data of these classes never come: how many classes (drawn once), "
        "or which",
    )
    absent_share: float = Field(
        default=0.0,
        ge=0,
        lt=1,
        description="spare those whose data of these classes are no more than this",
    )
    lost: Share | list[float] = Field(
        default=0.0, description="chance that an update is computed but never arrives"
    )
    seed: int | None = Field(
        default=None, ge=0, description="of rates, absence and the process; none: the run's seed"
    )


class ModelSection(OpenSection):
    """What is trained; further keys are options of the model (hidden, dropout, start, …)."""

    name: str | None = Field(
        default=None,
        description="one of `turnout list models`, or package.module:Name of a torch.nn.Module or a "
        "function that returns one; none: logistic regression, or the problem's own",
    )
    loss: str | None = Field(
        default=None, description="cross_entropy or half_squared; none: what fits the data"
    )


class ScheduleSection(Section):
    """How the local step size changes: by halving, or by given factors."""

    halve_every: Whole | None = Field(default=None, description="halve lr every so many rounds …")
    after: int = Field(default=0, ge=0, description="… from this round on")
    factors: list[float] | None = Field(
        default=None, description="lr times these, one after the other …"
    )
    until: list[int] = Field(default=[], description="… each until its round; the last has no end")

    @model_validator(mode="after")
    def _one_of_two(self) -> "ScheduleSection":
        if (self.halve_every is None) == (self.factors is None):
            raise InputError(
                "local.schedule has both or neither of halve_every and factors; it must have one"
            )
        return self


class LocalSection(Section):
    """What a client does in a round. Any of these keys in an [[algorithm]] overrides it there."""

    lr: float = Field(default=0.1, gt=0, description="local step size γ")
    steps: Whole | None = Field(
        default=None, description="local steps I; none: 5, unless epochs are given"
    )
    epochs: Whole | None = Field(
        default=None, description="passes over the client's data, in place of steps"
    )
    batch_size: Whole | None = Field(
        default=16, description="samples a step; none: all the client has"
    )
    momentum: float = Field(
        default=0.0, ge=0, lt=1, description="of local SGD; starts anew in each round"
    )
    weight_decay: float = Field(
        default=0.0, ge=0, description="added to the gradient, times the model"
    )
    clip: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="largest norm of a gradient; none: no bound"
    )
    mu: float = Field(
        default=0.0, ge=0, description="proximal μ: adds μ·(x − x_t) to the gradient (FedProx)"
    )
    schedule: ScheduleSection | None = Field(
        default=None, description="how lr changes over the rounds; none: not at all"
    )


def _named(value: Any) -> Any:
    return {"name": value} if isinstance(value, str) else value


class AlgorithmSection(OpenSection):
    """A method; further keys are its options, or settings of [local] that it has for itself."""

    name: str = Field(
        description="one of `turnout list algorithms`, or package.module:function of your own recipe"
    )
    label: str | None = Field(
        default=None,
        description="what tables and plots call it; none: its name and what sets it apart",
    )
    inner: Annotated["AlgorithmSection | None", BeforeValidator(_named)] = Field(
        default=None,
        description="the method that amplified or safari wraps, a name or a table; none: fedavg, or "
        "what the wrapper takes by itself",
    )


class Config(Section):
    """An experiment: every algorithm is run with every seed."""

    run: RunSection
    data: DataSection = DataSection()
    participation: ParticipationSection = ParticipationSection()
    model: ModelSection = ModelSection()
    local: LocalSection = LocalSection()
    algorithm: list[AlgorithmSection] = Field(
        min_length=1, description="the methods, a table [[algorithm]] for each"
    )
