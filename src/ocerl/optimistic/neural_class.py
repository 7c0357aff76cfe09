r"""A neural model class for Rep-UCB on observation vectors: :math:`P_h(x' \mid x, a) = \phi_h(x, a)^\top \mu_h(x')`.

Two perceptrons in each step: :math:`\phi_{h,z}(x, a)`, a softmax over `d` latents, and :math:`q_{h,z}(x')`, which
reads a latent off the next observation. With :math:`\rho_h` the next observations seen so far, in equal parts,

.. math:: \mu_{h,z}(x') = \rho_h(x')\, q_{h,z}(x') / \sum_{x''} \rho_h(x'')\, q_{h,z}(x'')

which is Bayes' rule: a distribution over the *seen* next observations, so an integral is a sum over them.
The likelihood of that model is maximised by Adam, with weight decay and noise on the inputs, from where the last fit
ended. It has local maxima, where one latent stands for two kinds: several restarts are trained side by side, and in
each step the likeliest one is used.

**Doubt.** As with any free φ, the estimate for an action that was never tried says nothing, and the elliptical bonus
on φ does not know. So the class adds :math:`c \|\psi(x)\|` in the inverse covariance of the action's
own observations (plus `prior` on the diagonal), where :math:`\psi` are random cosines: with a kernel much narrower
than the observations are apart this is :math:`c / \sqrt{1 + N}`, `N` counting the visits nearby.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from ocerl.errors import OcerlError
from ocerl.mdp.checks import check_whole

Floats = NDArray[np.float64]
Layers = list[tuple[Any, Any]]


@dataclass(frozen=True, kw_only=True)
class NeuralConfig:
    """What can be chosen about the networks and their training."""

    rank: int = 3
    """d."""
    hidden: tuple[int, ...] = (64, 64)
    rate: float = 3e-3
    """Adam's learning rate, falling to 0 within each fit."""
    decay: float = 40.0
    """The weight decay, in parts of the learning rate and for a single transition: it is divided by their number."""
    jitter: float = 0.15
    """Normal noise on the scaled observations in training: without it networks learn single outcomes by heart."""
    batch: int = 256
    restarts: int = 4
    """So many pairs of networks are trained in each step, and the likeliest one is used."""
    iterations: int = 300
    """How many steps of Adam a fit takes, from where the last one ended."""
    doubts: float = 0.3
    """`c`."""
    prior: float = 1.0
    """What is added to the covariance of ψ."""
    cosines: int = 512
    """How many there are in ψ."""
    width: float = 0.25
    """The kernel's width, in parts of the median distance between the first observations."""

    def __post_init__(self) -> None:
        for name in ("rank", "batch", "restarts", "iterations", "cosines"):
            check_whole(f"the {name}" if name == "rank" else f"the number of {name}", getattr(self, name))
        if self.doubts < 0 or min(self.rate, self.width) <= 0 or self.decay < 0:
            raise OcerlError("rate and width must be positive, decay and doubts at least 0")


@dataclass(eq=False)
class NeuralClass:
    """The two networks of every step, with the transitions they are fitted to."""

    steps: int
    """Transitions are learned in so many steps: all but the last."""
    actions: int
    dimension: int
    config: NeuralConfig = field(default_factory=NeuralConfig)
    seed: int = 0
    seen: list[list[tuple[Floats, int, Floats]]] = field(init=False)
    """`[step]`: rows `(x, a, x')`."""
    networks: Any = field(init=False)
    """φ's and q's layers; the first axis of all weights is `[restart · steps + step]`."""

    def __post_init__(self) -> None:
        self.seen = [[] for _ in range(self.steps)]
        self.random = np.random.default_rng(self.seed)
        self.key = jax.random.key(self.seed)
        sizes = (self.dimension, *self.config.hidden)
        self.networks = [
            _layers(self.random, self.config.restarts * self.steps, (*sizes, outputs))
            for outputs in (self.actions * self.config.rank, self.config.rank)
        ]
        self.optimizer = optax.scale_by_adam()
        self.state = self.optimizer.init(self.networks)
        self.likelihood = np.zeros((self.config.restarts, self.steps))
        self.middle, self.scale = np.zeros(self.dimension), np.ones(self.dimension)
        self.waves = np.zeros((self.dimension, self.config.cosines))
        self.phases = self.random.uniform(0, 2 * np.pi, self.config.cosines)

    @property
    def rank(self) -> int:
        return self.config.rank

    def add(self, step: int, before: Floats, action: int, after: Floats) -> None:
        """Take note of a transition."""
        self.seen[step].append((before, action, after))

    def calibrate(self, observations: Floats) -> None:
        """Take the inputs' scale and the kernel's width from observations; before any fit, and once."""
        if len(observations) < 2:
            raise OcerlError(f"a neural class needs observations to scale its inputs by, got {len(observations)}")
        self.middle, self.scale = observations.mean(axis=0), observations.std(axis=0) + 1e-6
        scaled = (observations - self.middle) / self.scale
        apart = np.sqrt(((scaled[:, None] - scaled[None]) ** 2).sum(axis=-1))
        typical = float(np.median(apart[np.triu_indices(len(scaled), 1)]))
        self.waves = self.random.normal(size=self.waves.shape) / (self.config.width * typical)

    def fit(self) -> Floats:
        """Some steps of Adam; for each restart and step the mean log-likelihood of the last batches against ρ's."""
        counts = np.array([len(rows) for rows in self.seen])
        if not counts.all():
            raise OcerlError("a neural class needs transitions in every step before it can be fitted")
        room = 4 ** ((int(counts.max()) - 1).bit_length() // 2 + 1)
        before, after = np.zeros((2, self.steps, room, self.dimension), dtype=np.float32)
        action = np.zeros((self.steps, room), dtype=np.int32)
        for step, rows in enumerate(self.seen):
            before[step, : len(rows)] = (np.stack([row[0] for row in rows]) - self.middle) / self.scale
            after[step, : len(rows)] = (np.stack([row[2] for row in rows]) - self.middle) / self.scale
            action[step, : len(rows)] = [row[1] for row in rows]
        self.key, own = jax.random.split(self.key)
        c = self.config
        data = tuple(np.concatenate([array] * c.restarts) for array in (before, action, after, counts))
        self.networks, self.state, loss = _adam(
            self.networks, self.state, data, own, (c.rate, c.decay, c.jitter), self.optimizer, c.iterations, c.batch
        )
        self.likelihood = -np.asarray(loss, dtype=np.float64).reshape(c.restarts, self.steps)
        return self.likelihood

    def snapshot(self) -> NeuralModel:
        """What was fitted, to plan with; later fits leave it as it is."""
        best = self.likelihood.argmax(axis=0) * self.steps + np.arange(self.steps)
        copied = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64)[best], self.networks)
        return NeuralModel(copied[0], copied[1], self.middle, self.scale, self.waves, self.phases, self.actions)


@dataclass(frozen=True, eq=False)
class NeuralModel:
    """The networks with fixed weights."""

    forward: Layers
    backward: Layers
    middle: Floats
    scale: Floats
    waves: Floats
    phases: Floats
    actions: int

    def features(self, step: int, observations: Floats) -> Floats:
        """`φ[observation, action, latent]`."""
        logits = _values(self.forward, step, (observations - self.middle) / self.scale)
        return _softmax(logits.reshape(len(observations), self.actions, -1))

    def weights(self, step: int, after: Floats) -> Floats:
        """`μ[latent, i]`: the distribution over next observations of the step, given in `after`."""
        parts = _softmax(_values(self.backward, step, (after - self.middle) / self.scale)) + 1e-9
        return (parts / parts.sum(axis=0)).T

    def cosines(self, observations: Floats) -> Floats:
        """`ψ[observation, i]`, of norm about 1."""
        scaled = (observations - self.middle) / self.scale
        return np.sqrt(2 / self.phases.size) * np.cos(scaled @ self.waves + self.phases)


def _layers(random: np.random.Generator, lanes: int, sizes: tuple[int, ...]) -> Layers:
    """Weights with the fan-in's scale, small in the last layer: all latents begin nearly alike."""
    pairs = list(pairwise(sizes))
    gains = [2**0.5] * (len(pairs) - 1) + [0.5]
    return [
        (jnp.asarray(random.normal(size=(lanes, m, n)) * gain / m**0.5, dtype=jnp.float32), jnp.zeros((lanes, n)))
        for gain, (m, n) in zip(gains, pairs, strict=True)
    ]


def _values(layers: Layers, step: int, x: Floats) -> Floats:
    for weight, bias in layers[:-1]:
        x = np.tanh(x @ weight[step] + bias[step])
    return x @ layers[-1][0][step] + layers[-1][1][step]


def _softmax(logits: Floats) -> Floats:
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


def _apply(layers: Any, x: jax.Array) -> jax.Array:
    for weight, bias in layers[:-1]:
        x = jnp.tanh(x @ weight + bias)
    return x @ layers[-1][0] + layers[-1][1]


def _loss(networks: Any, before: jax.Array, action: jax.Array, after: jax.Array) -> jax.Array:
    """Minus the mean of `log Σ_z φ_z(x, a) q_z(x') / mean q_z` in one step; the batch stands for ρ."""
    size, rank = before.shape[0], networks[1][-1][1].shape[-1]
    logits = _apply(networks[0], before).reshape(size, -1, rank)
    chosen = jax.nn.log_softmax(jnp.take_along_axis(logits, action[:, None, None], axis=1)[:, 0])
    read = jax.nn.log_softmax(_apply(networks[1], after))
    mean = jax.scipy.special.logsumexp(read, axis=0) - jnp.log(size)
    return -jax.scipy.special.logsumexp(chosen + read - mean, axis=-1).mean()


@partial(jax.jit, static_argnums=(5, 6, 7))
def _adam(
    networks: Any, state: Any, data: Any, key: jax.Array, rates: Any, optimizer: Any, iterations: int, batch: int
) -> Any:
    """So many steps on random batches, all steps of the horizon side by side."""
    before, action, after, counts = data

    def total(weights: Any, at: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
        rows = jax.vmap(lambda array, index: array[index])
        shape = (*at.shape, before.shape[-1])
        jitter = rates[2] * jax.random.normal(noise, (2, *shape))
        losses = jax.vmap(_loss)(weights, rows(before, at) + jitter[0], rows(action, at), rows(after, at) + jitter[1])
        return losses.sum(), losses

    def one(carry: Any, own: Any) -> Any:
        (weights, inner, last), (own, left) = carry, own
        at = jax.random.randint(own, (counts.size, batch), 0, counts[:, None])
        (_, losses), gradient = jax.value_and_grad(total, has_aux=True)(weights, at, jax.random.fold_in(own, 1))
        updates, inner = optimizer.update(gradient, inner, weights)
        decay = rates[1] / counts

        def moved(weight: jax.Array, update: jax.Array) -> jax.Array:
            return weight - rates[0] * left * (update + decay.reshape(-1, *[1] * (weight.ndim - 1)) * weight)

        return (jax.tree.map(moved, weights, updates), inner, 0.95 * last + 0.05 * losses), None

    start = (networks, state, jnp.zeros(counts.size))
    (networks, state, loss), _ = jax.lax.scan(
        one, start, (jax.random.split(key, iterations), jnp.linspace(1, 0, iterations))
    )
    return networks, state, loss
