"""Imports point one way, `import ocerl` is light, and every public name is where the package says it is."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

import ocerl

PACKAGE = Path(ocerl.__file__).parent

# A unit is a module or package directly under ocerl; it may import the units of the lines above its own.
LAYERS = (
    {"errors"},
    {"risk"},
    {"mdp"},
    {"planning", "envs", "gym"},
    {"baselines"},
    {"optimistic", "gradient"},
    {"conformance"},
    {"experiments", "report"},
    {"cli"},
)
RANK = {unit: rank for rank, units in enumerate(LAYERS) for unit in units}
NEIGHBOURS = {"experiments", "report"}  # an experiment draws its report, and a report reads its experiment

# What `import ocerl` and `import ocerl.risk` must not load.
HEAVY = ("gymnasium", "jax", "matplotlib", "numba", "scipy", "torch")


def imported_modules(source: str, package: str) -> set[str]:
    """Every module, or name in one, that `source` imports anywhere; relative imports start from `package`."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*parents, *filter(None, [node.module])])
            found |= {f"{base}.{alias.name}" for alias in node.names}
    return found


def wrong_imports(source: str, module: str) -> set[str]:
    """What `module` (dotted, its `__init__` included in the name) imports of ocerl and may not."""
    unit = module.split(".")[1]
    wrong: set[str] = set()
    for imported in imported_modules(source, module.rpartition(".")[0]):
        first, _, rest = imported.partition(".")
        target = rest.partition(".")[0]
        if first != "ocerl" or target in {unit, "__version__"} or {unit, target} <= NEIGHBOURS:
            continue
        # What is not a unit is a name of the package itself: inside it, names come from their own modules.
        if target not in RANK or RANK[target] >= RANK[unit]:
            wrong.add(imported)
    return wrong


def modules() -> dict[str, Path]:
    names = {path: ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in PACKAGE.rglob("*.py")}
    return {name: path for path, name in sorted(names.items()) if name != "ocerl.__init__"}


def test_every_unit_has_a_layer() -> None:
    units = {name.split(".")[1] for name in modules()}
    assert units <= set(RANK), f"give these a layer in this file: {sorted(units - set(RANK))}"


@pytest.mark.parametrize("module", modules())
def test_imports_point_one_way(module: str) -> None:
    assert not wrong_imports(modules()[module].read_text(encoding="utf-8"), module)


@pytest.mark.parametrize(
    ("module", "source", "wrong"),
    [
        ("ocerl.risk._base", "from ocerl.mdp import TabularMDP", {"ocerl.mdp.TabularMDP"}),
        ("ocerl.risk._base", "def f():\n    import ocerl.planning._solve", {"ocerl.planning._solve"}),
        ("ocerl.risk.__init__", "from ..mdp import TabularMDP", {"ocerl.mdp.TabularMDP"}),
        ("ocerl.planning.solve", "from .. import gradient", {"ocerl.gradient"}),
        ("ocerl.mdp.lattice", "import ocerl", {"ocerl"}),
        ("ocerl.mdp.lattice", "from ocerl import plan", {"ocerl.plan"}),
        ("ocerl.gym.wrapper", "from ocerl.planning import plan", {"ocerl.planning.plan"}),
        ("ocerl.gradient.ppo", "from ocerl.optimistic.golf import init", {"ocerl.optimistic.golf.init"}),
        ("ocerl.report.html", "from ocerl.cli import main", {"ocerl.cli.main"}),
        ("ocerl.planning.solve", "from ._kernels import sweep\nfrom ..risk import CVaR\nimport jax", set()),
        ("ocerl.mdp.__init__", "from ocerl import __version__\nfrom . import zoo", set()),
        ("ocerl.cli", "from ocerl.errors import OcerlError\nfrom ocerl.gradient.ppo import init", set()),
        ("ocerl.report.html", "from ocerl.experiments.tables import table", set()),
    ],
)
def test_the_check_of_the_layers_itself(module: str, source: str, wrong: set[str]) -> None:
    assert wrong_imports(source, module) == wrong


def import_cost(module: str) -> tuple[float, set[str]]:
    """Seconds that `import module` takes after NumPy in a new process, and the heavy packages then loaded."""
    script = (
        "import json, sys, time, numpy\n"
        "start = time.perf_counter()\n"
        f"import {module}\n"
        "print(json.dumps([time.perf_counter() - start, sorted(sys.modules)]))\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    seconds, loaded = json.loads(ran.stdout)
    return seconds, set(HEAVY) & set(loaded)


@pytest.mark.parametrize("module", ["ocerl", "ocerl.risk"])
def test_import_is_light(module: str) -> None:
    costs = [import_cost(module) for _ in range(3)]
    assert not set.union(*(heavy for _, heavy in costs))
    assert min(seconds for seconds, _ in costs) < 0.5


def test_import_cost_sees_a_heavy_package() -> None:
    assert import_cost("scipy")[1] == {"scipy"}


@pytest.mark.parametrize("name", ocerl.__all__)
def test_public_name_resolves(name: str) -> None:
    value = getattr(ocerl, name)
    assert getattr(value, "__name__", name).rpartition(".")[2] == name
    assert name in dir(ocerl)


def test_the_three_lists_of_public_names_agree() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    typed = {
        alias.name: node.module
        for branch in tree.body
        if isinstance(branch, ast.If)
        for node in ast.walk(branch)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert typed == ocerl._HOME
    assert {*ocerl._HOME, "__version__"} == set(ocerl.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = ocerl.no_such_name
