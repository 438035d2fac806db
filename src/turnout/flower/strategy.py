"""Driver 2: a live federation on Flower, by the same round functions as the simulator."""

import logging
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MetricRecord
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result
from flwr.serverapp.strategy import Strategy as FlowerStrategy
from numpy.typing import ArrayLike

from turnout.algorithm import Algorithm
from turnout.data.pool import Pool
from turnout.errors import InputError, require
from turnout.flower.assistance import assistant_of
from turnout.flower.clock import Clock
from turnout.flower.exchange import Exchange, Letter
from turnout.flower.federation import Federation
from turnout.flower.happened import Happened, mean_metrics
from turnout.flower.packing import Packing
from turnout.flower.privacy import Privacy, require_private
from turnout.flower.progress import begin
from turnout.flower.roster import Population, Roster
from turnout.flower.rules import Rules
from turnout.flower.secure import SecureAggregation, require_plain, require_sums
from turnout.flower.store import Store, fit
from turnout.models import Model
from turnout.participation.process import Participation

LOG = logging.getLogger("flwr.turnout")

_NOBODY = (
    "round %d: none of the %d clients asked has delivered within %g s; if they need longer, raise "
    "the deadline, or let updates in that come a round late (late_rounds)"
)

Evaluate = Callable[[int, ArrayRecord], MetricRecord | None]


class Strategy(FlowerStrategy):
    """A Flower strategy that runs any turnout algorithm on clients that come and go.

    `population` is N of f = (1/N) Σ F_n: a number if it is known and names come as they come, a
    list of the clients' names, or None to count whoever has joined so far (N then grows, and the
    objective with it). `rules` say how long rounds take and what they accept. With `directory`,
    every round is checkpointed there, and a Strategy started on it again goes on; participation is
    logged there, too.

    `model` is needed where parameters are frozen or tied, and, with `server_data`, for algorithms
    that train at the server. `shares` are the q_n of f = Σ q_n F_n, by row. `participation` injects
    a synthetic mask: who is asked in each round, and whose update is lost on its way. With `secure`
    (and clients whose app is `secure`, too) the server sees only sums of updates. With
    `privacy` it adds noise to them, and the metrics hold the ε spent so far.
    """

    def __init__(
        self,
        algorithm: Algorithm,
        population: Population,
        *,
        rules: Rules | None = None,
        seed: int = 0,
        directory: str | Path | None = None,
        model: Model | None = None,
        server_data: Pool | None = None,
        shares: ArrayLike | None = None,
        participation: Participation | None = None,
        secure: SecureAggregation | None = None,
        privacy: Privacy | None = None,
        evaluate_every: int | None = None,
        clock: Clock | None = None,
    ) -> None:
        require(
            evaluate_every is None or evaluate_every >= 1,
            "evaluate_every",
            evaluate_every,
            "a number of rounds from 1, or none",
        )
        right = "an algorithm, such as turnout.algorithms.fedau()"
        require(isinstance(algorithm, Algorithm), "algorithm", algorithm, right)
        if participation is not None and participation.asynchronous:
            raise InputError(
                f"participation is {participation.name}, in which clients take their own time; in a "
                "live federation they do so by themselves: leave it out, and let updates in late with "
                "Rules(late_rounds=...)"
            )
        most = None if rules is None else rules.per_round
        right = f"none: {algorithm.name} itself says how many are asked"
        require(algorithm.selection is None or most is None, "per_round", most, right)
        roster = Roster.of(population)  # refused here rather than in a running federation
        if secure is not None:
            require_sums(algorithm)
            require_plain(secure, roster, rules or Rules())
        if privacy is not None:
            if secure is not None:
                raise InputError(
                    "privacy and secure are both given; where the server sees no upload it cannot "
                    "bound one, so give one of them"
                )
            require_private(algorithm)
            bound = None if rules is None else rules.norm_bound
            right = "none: privacy.clip bounds uploads, and whom a bound refuses would be seen"
            require(bound is None, "norm_bound with privacy", bound, right)
        self.secure, self.privacy = secure, privacy
        self.algorithm, self.population, self.seed = algorithm, population, seed
        self.rules, self.clock = rules or Rules(), clock or Clock()
        self.store = None if directory is None else Store(Path(directory))
        self.model, self.server_data, self.shares = model, server_data, shares
        self.participation, self.evaluate_every = participation, evaluate_every
        self._line: Exchange | None = None
        self._round: tuple[Happened, list[Letter], float] | None = None

    # What Flower asks of a strategy ---------------------------------------------------------------

    def summary(self) -> None:
        """Log what runs."""
        LOG.info("\t├── Algorithm: %r, seed %d", self.algorithm, self.seed)
        LOG.info("\t├── Population: %s", self.population or "whoever joins")
        LOG.info("\t└── %r", self.rules)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """The orders of a round; none if nobody is there, or if the server trains by itself."""
        line = self._open(grid, arrays)
        federation, opened = line.federation, self.clock.now()
        attendance = federation.attendance()
        happened = Happened(federation.round, "clients" if federation.by_clients() else "server")
        letters: list[Letter] = []
        if happened.by == "clients":
            self._serve(federation, "beside")
            nodes = line.choose(happened, attendance, opened)
            config = ConfigRecord({**config, "server-round": server_round})
            letters = line.orders(nodes, attendance, config, opened)
        happened.asked = {ask.row: ask for _, ask in letters}
        self._round = happened, letters, opened
        return [message for message, _ in letters]

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord, MetricRecord]:
        """Take in replies that a loop other than `start` has pulled, and end the round."""
        assert self._round is not None, "configure_train comes first"
        assert self._line is not None
        happened, letters, _ = self._round
        asks = {message.metadata.message_id: ask for message, ask in letters}
        for reply in replies:
            ask = asks.pop(reply.metadata.reply_to_message_id, None)
            if ask is not None:
                self._line.federation.take(ask, reply, happened, self.clock.wall())
        self._line.federation.unanswered(asks.values(), happened, "did not answer")
        return self._end()

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> list[Message]:
        """Requests to evaluate the model, to everybody who is there, where the round is due one."""
        if self.evaluate_every is None or server_round % self.evaluate_every:
            return []
        config = ConfigRecord({**config, "server-round": server_round})
        return self._open(grid, arrays).surveys(arrays, config)

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Means of what clients report, by their number of examples."""
        answers = [r.content for r in replies if r.has_content()]
        reported = [m for content in answers for m in content.metric_records.values()]
        return mean_metrics(reported) if reported else None

    # Turnout's own loop ---------------------------------------------------------------------------

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Evaluate | None = None,
    ) -> Result:
        """Run until `num_rounds` rounds have been closed, those before a restart included.

        No round takes longer than the rules' deadline, or `timeout` if that is shorter.
        """
        deadline = min(self.rules.deadline, timeout)
        self.rules = replace(
            self.rules, deadline=deadline, min_round=min(self.rules.min_round, deadline)
        )
        with nullcontext() if self.store is None else self.store.held():
            line = self._open(grid, initial_arrays)
            return self._play(
                line,
                num_rounds,
                train_config or ConfigRecord(),
                evaluate_config or ConfigRecord(),
                evaluate_fn,
            )

    def _play(
        self,
        line: Exchange,
        num_rounds: int,
        train_config: ConfigRecord,
        evaluate_config: ConfigRecord,
        evaluate_fn: Evaluate | None,
    ) -> Result:
        federation, result = line.federation, Result()
        result.train_metrics_clientapp.update(self._before)
        LOG.info("Starting turnout's strategy for %d rounds:", num_rounds)
        self.summary()
        if federation.round:
            LOG.info("Going on after round %d", federation.round)
        elif evaluate_fn is not None:
            _keep(result.evaluate_metrics_serverapp, 0, evaluate_fn(0, federation.arrays))
        if federation.round < num_rounds:
            line.assemble()
        while federation.round < num_rounds:
            number = federation.round + 1
            self.configure_train(number, federation.arrays, train_config, line.grid)
            assert self._round is not None
            happened, letters, opened = self._round
            if happened.by == "clients" and self.secure is not None:
                line.collect_sum(self.secure, letters, happened, opened)
            elif happened.by == "clients":
                line.collect(letters, happened, opened)
            arrays, metrics = self._end()
            _keep(result.train_metrics_clientapp, number, metrics)
            LOG.info("[ROUND %d/%d] %s", number, num_rounds, _brief(happened))
            if happened.asked and not happened.taken:
                LOG.warning(_NOBODY, number, len(happened.asked), self.rules.deadline)
            surveys = self.configure_evaluate(number, arrays, evaluate_config, line.grid)
            if surveys:
                answers = self.aggregate_evaluate(number, line.survey(surveys))
                _keep(result.evaluate_metrics_clientapp, number, answers)
            if evaluate_fn is not None:
                _keep(result.evaluate_metrics_serverapp, number, evaluate_fn(number, arrays))
        result.arrays = federation.arrays
        return result

    def _open(self, grid: Grid, arrays: ArrayRecord) -> Exchange:
        """The federation as it was saved, or a new one from `arrays`; opened once."""
        if self._line is not None:
            return self._line
        roster, packing = Roster.of(self.population), Packing.of(arrays, self.model)
        x, algorithm = packing.start, self.algorithm
        if self.participation is not None:
            clients = self.participation.clients
            right = f"{roster.size} clients, the population"
            require(clients == roster.size, "participation", f"{clients} clients", right)
        presence = {} if self.participation is None else self.participation.init()
        shares = None if self.shares is None else np.asarray(self.shares, dtype=np.float64)
        progress = begin(algorithm, x, roster.size, shares, presence)
        saved = None if self.store is None else self.store.load()
        self._before: dict[int, MetricRecord] = {}
        if saved is not None:
            fit(saved, progress, roster, algorithm.name, self.seed)
            progress, self._before = saved.progress, saved.metrics
        self._assistant = assistant_of(algorithm, self.model, self.server_data, self.seed, x.dtype)
        federation = Federation(
            algorithm,
            self.seed,
            roster,
            packing,
            self.participation,
            self.rules.norm_bound,
            self.privacy,
            progress,
        )
        self._line = Exchange(grid, self.clock, self.rules, federation)
        return self._line

    def _end(self) -> tuple[ArrayRecord, MetricRecord]:
        """Close the round, write it down, and say what happened."""
        assert self._round is not None
        assert self._line is not None
        happened, _, _ = self._round
        self._round, federation = None, self._line.federation
        if happened.by == "clients":
            federation.end(happened)
            self._serve(federation, "after")
        else:
            self._serve(federation, "instead")
        federation.require_finite()
        self._line.drop_stale(federation.round)
        metrics = happened.metrics()
        if self.privacy is not None:
            often = int(federation.progress.delivered.max())
            metrics["epsilon"] = self.privacy.epsilon(often)
        if self.store is not None:
            self.store.save(federation, happened.entries.values(), metrics)
        return federation.arrays, metrics

    def _serve(self, federation: Federation, when: str) -> None:
        """The server trains, if this is where in the round it does."""
        assistance, progress = self.algorithm.assistance, federation.progress
        if self._assistant is not None and assistance is not None and assistance.when == when:
            progress.server = self._assistant.step(self.algorithm, progress.server)


def _keep(into: dict[int, MetricRecord], number: int, metrics: MetricRecord | None) -> None:
    if metrics is not None:
        into[number] = metrics


def _brief(happened: Happened) -> str:
    if happened.by == "server":
        return "the server trained"
    late = len(happened.taken) - happened.delivered
    return f"{happened.delivered} of {len(happened.asked)} delivered" + (
        f", {late} late" * (late > 0)
    )
