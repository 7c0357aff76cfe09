"""Every example of the README and the docs is run.

On each page, in its order and in one empty folder: `python` blocks share one namespace, as in a session, and
the `ocerl …` commands of `console` and `bash` blocks have to exit with 0; what they print is not compared.
A block after a line `<!-- not run: reason -->` is left out.
"""

import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
SHELLS = {"bash", "console", "sh", "shell"}

FENCE = re.compile(
    r"^(?P<indent>[ \t]*)(?P<fence>`{3,})(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
NOT_RUN = re.compile(r"<!-- not run: .+? -->\s*\Z", re.DOTALL)
COMMAND = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?(ocerl(?: .*)?)$")


@dataclass(frozen=True)
class Block:
    """One fenced block: its language, its code and the line of the page its code starts on."""

    language: str
    code: str
    line: int


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page that are to be run, in order."""
    return [
        Block(found["language"], textwrap.dedent(found["code"]), page[: found.start("code")].count("\n") + 1)
        for found in FENCE.finditer(page)
        if not NOT_RUN.search(page[: found.start()])
    ]


def commands(block: Block) -> list[str]:
    """The `ocerl` commands of a shell block; in a `console` block, where output is too, those after `$ `."""
    lines = block.code.replace("\\\n", " ").splitlines()
    if block.language == "console":
        lines = [line for line in lines if line.startswith("$ ")]
    return [found[1] for line in lines if (found := COMMAND.match(line))]


def run_command(command: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, f"{command!r} exited with {ran.returncode}: {ran.stderr or ran.stdout}"


def run_page(page: str, name: str) -> None:
    """Run all blocks of a page in the current folder."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "python":
            # The blank lines make a traceback point at the line of the page.
            exec(compile("\n" * (block.line - 1) + block.code, name, "exec"), namespace)
        elif block.language in SHELLS:
            for command in commands(block):
                run_command(command)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_page(page.read_text(encoding="utf-8"), str(page))


SAMPLE = """\
# A page

```python
first = 1
```

<!-- not run: needs a
     cluster -->
```python
second = missing
```

    - in a list

      ```python
      third = first + 1
      assert third == 2
      ```

```console
$ ocerl plan paper \\
    --risk mean
ocerl prints this
$ make demo
```

```bash
pip install ocerl
.venv/bin/ocerl frontier paper | cat
ocerl --version
```

```
ocerl is only named here
```
"""


def test_the_blocks_of_a_page() -> None:
    found = blocks(SAMPLE)
    assert [(block.language, block.line) for block in found] == [
        ("python", 4),
        ("python", 16),
        ("console", 21),
        ("bash", 28),
        ("", 34),
    ]
    assert found[1].code == "third = first + 1\nassert third == 2\n"
    assert [command.split() for command in commands(found[2])] == [["ocerl", "plan", "paper", "--risk", "mean"]]
    assert commands(found[3]) == ["ocerl frontier paper | cat", "ocerl --version"]


def test_a_page_is_one_session() -> None:
    run_page("```python\na = 1\n```\ntext\n```python\nassert a == 1\n```\n", "page.md")


def test_a_failing_block_fails_at_its_line() -> None:
    with pytest.raises(ZeroDivisionError) as failure:
        run_page("# A page\n\n```python\n1 / 0\n```\n", "page.md")
    last = failure.traceback[-1]
    assert (str(last.path), last.lineno + 1) == ("page.md", 4)


def test_a_failing_command_fails() -> None:
    with pytest.raises(AssertionError, match="exited with 3: gone wrong"):
        run_command("echo gone wrong >&2; exit 3")
