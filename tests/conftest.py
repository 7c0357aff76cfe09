"""What every test runs under: compilation caches that survive the run, no window, repeatable property tests.

The environment is set before any test imports JAX, Numba or Matplotlib, which read it once; the processes
that tests start inherit it.
"""

import os
from pathlib import Path

from hypothesis import HealthCheck, settings

CACHE = Path(__file__).resolve().parents[1] / ".cache"

os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(CACHE / "jax"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.1")
os.environ.setdefault("NUMBA_CACHE_DIR", str(CACHE / "numba"))
os.environ.setdefault("MPLBACKEND", "Agg")

# `steady` gives the same examples in every run; `explore` (make test-all) searches for new ones. How long
# one takes says something about the machine only, so neither deadline nor the health check on time applies.
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("steady")
