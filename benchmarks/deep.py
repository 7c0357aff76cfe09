"""Environment steps per second of PPO on CartPole-v1: ours, which carries a budget for a CVaR, against its peers.

    python benchmarks/deep.py                    # 8 and 64 environments, whoever is installed
    python benchmarks/deep.py --one-core         # processor time of one core: steady where others use the machine too
    python benchmarks/deep.py --only ocerl --environments 8 --steps 200000

All have the same settings: two networks 64 × 64 with tanh, batches of 128 steps in each environment, 4 epochs of 4
minibatches. Ours trains one budget-conditioned policy for `cvar:0.25`, so its networks take in 38 numbers instead of
4. Peers that are not installed are left out; to have them:

    pip install torch==2.13.0 && pip install stable-baselines3 gymnax==0.0.9 rejax==0.1.3

(rejax 0.1.3 does not work with the `step` of later gymnax; PureJaxRL cannot be installed by pip, and rejax has the same
form: environment, networks and updates in one compiled loop.) Contestants take turns on warm code, and figures are
medians; what the first call costs beyond a warm one, tracing and compiling, is said apart. Compare figures of one run
only: the machine matters.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from cartpole import CartPole

ROLLOUT, EPOCHS, MINIBATCHES, HIDDEN = 128, 4, 4, (64, 64)
LEARNING_RATE = 3e-4
BUDGET_KNOTS = 17

Train = Callable[[int], None]
"""Trains on for so many updates and waits for them."""
Clock = Callable[[], float]


def ours(environments: int) -> Train:
    from ocerl.gradient.deep.config import DeepConfig
    from ocerl.gradient.deep.judging import Judge
    from ocerl.gradient.deep.running import Run
    from ocerl.gradient.deep.world import driver_of, open_world
    from ocerl.risk import CVaR

    config = DeepConfig(
        oracle="ppo-forward",
        environments=environments,
        group=1,
        rollout=ROLLOUT,
        epochs=EPOCHS,
        minibatches=MINIBATCHES,
        hidden=HIDDEN,
        learning_rate=LEARNING_RATE,
        budget_knots=BUDGET_KNOTS,
    )
    world, risk = open_world(CartPole()), CVaR(0.25)
    driver = driver_of(world, risk, config)
    state, _ = Run(driver=driver, config=config, judge=Judge(world, driver, risk), seeds=range(1)).begun()

    def train(updates: int) -> None:
        nonlocal state
        for done in range(0, updates, driver.room):
            state, _ = driver.advance(state, min(driver.room, updates - done))
        jax.block_until_ready(state.learner.updates)

    return train


def rejax_ppo(environments: int) -> Train:
    import rejax

    algorithm: Any = rejax.get_algo("ppo").create(
        env="CartPole-v1",
        agent_kwargs={"activation": "tanh", "hidden_layer_sizes": HIDDEN},
        num_envs=environments,
        num_steps=ROLLOUT,
        num_epochs=EPOCHS,
        num_minibatches=MINIBATCHES,
        learning_rate=LEARNING_RATE,
        max_grad_norm=0.5,
    )

    @jax.jit
    def iterate(updates: jax.Array, state: Any) -> Any:
        return jax.lax.fori_loop(0, updates, lambda _, state: algorithm.train_iteration(state), state)

    # A Python number in the state would be traced as another type than what comes back.
    state = jax.tree.map(jnp.asarray, algorithm.init_state(jax.random.key(0)))

    def train(updates: int) -> None:
        nonlocal state
        state = jax.block_until_ready(iterate(jnp.int32(updates), state))

    return train


def sb3_ppo(environments: int) -> Train:
    import torch
    from stable_baselines3 import PPO
    from stable_baselines3.common.env_util import make_vec_env

    # Networks of this size are slower with more threads.
    torch.set_num_threads(1)
    batch = environments * ROLLOUT
    model = PPO(
        "MlpPolicy",
        make_vec_env("CartPole-v1", n_envs=environments),
        n_steps=ROLLOUT,
        n_epochs=EPOCHS,
        batch_size=batch // MINIBATCHES,
        learning_rate=LEARNING_RATE,
        policy_kwargs={"net_arch": list(HIDDEN)},
        device="cpu",
    )

    def train(updates: int) -> None:
        model.learn(updates * batch, reset_num_timesteps=False)

    return train


class Contestant(NamedTuple):
    build: Callable[[int], Train]
    """From a number of environments."""
    package: str
    """What has to be installed."""
    share: float = 1.0
    """The part of the steps of a turn that it is given."""


CONTESTANTS = {
    "ocerl": Contestant(ours, "ocerl"),
    "rejax": Contestant(rejax_ppo, "rejax"),
    "stable-baselines3": Contestant(sb3_ppo, "stable_baselines3", 1 / 8),
}


def compare(names: list[str], environments: int, steps: int, repeats: int, clock: Clock) -> None:
    """Print the steps per second of each, and ours over the others'."""
    batch = environments * ROLLOUT
    trains: dict[str, Train] = {}
    first: dict[str, float] = {}
    for name in names:
        trains[name] = CONTESTANTS[name].build(environments)
        first[name] = timed(trains[name], 1, clock)
    speeds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(repeats):
        for name in names:
            updates = max(1, round(steps * CONTESTANTS[name].share / batch))
            speeds[name].append(updates * batch / timed(trains[name], updates, clock))
    print(f"\n{environments} environments × {ROLLOUT} steps:")
    for name in names:
        speed = statistics.median(speeds[name])
        print(
            f"  {name:18} {speed:10,.0f} steps/s ({min(speeds[name]):,.0f} to {max(speeds[name]):,.0f}), "
            f"{1e3 * batch / speed:.2f} ms an update, first call {max(first[name] - batch / speed, 0.0):.1f} s more"
        )
    for name in names[1:] if names[0] == "ocerl" else []:
        ratios = [ours / theirs for ours, theirs in zip(speeds["ocerl"], speeds[name], strict=True)]
        print(f"  ocerl / {name}: {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")


def timed(train: Train, updates: int, clock: Clock) -> float:
    began = clock()
    train(updates)
    return clock() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS), help="of the contestants")
    parser.add_argument(
        "--steps", type=int, default=1_000_000, help="environment steps of a turn (slow peers do fewer)"
    )
    parser.add_argument("--repeats", type=int, default=5, help="turns of each")
    parser.add_argument("--one-core", action="store_true", help="stay on one core and count processor time")
    options = parser.parse_args()
    clock = time.perf_counter
    if options.one_core:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
        # JAX reads this when it first computes.
        os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_cpu_multi_thread_eigen=false"
        clock = time.process_time
    # A cache would hide what compiling costs.
    jax.config.update("jax_enable_compilation_cache", False)
    wanted = [name for name in CONTESTANTS if name in options.only]
    names = [name for name in wanted if importlib.util.find_spec(CONTESTANTS[name].package)]
    for name in wanted:
        if name not in names:
            print(f"skip {name}: not installed")
    load = ", ".join(f"{x:.1f}" for x in os.getloadavg())
    print(f"{platform.machine()}, {len(os.sched_getaffinity(0))} cores, load before {load}; JAX {jax.__version__}")
    for environments in options.environments:
        compare(names, environments, options.steps, options.repeats, clock)


if __name__ == "__main__":
    main()
