# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "examples/python").glob("*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_an_example_runs_and_the_guide_shows_it(program: Path, tmp_path: Path) -> None:
    """Shorter than in the guide: the traffic of the example is long enough for charts."""
    (tmp_path / "scenarios").symlink_to(ROOT / "scenarios")
    text = program.read_text()
    short = text.replace('"0.25 s"', '"0.201 s"').replace("seeds=5", "seeds=2").replace("seeds=3", "seeds=2")
    (tmp_path / "program.py").write_text(short)
    command = [sys.executable, "-c", "import matplotlib; matplotlib.use('Agg'); exec(open('program.py').read())"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout
    code = text.split('"""', 2)[2].strip()
    assert code in (ROOT / "docs/guide/python.md").read_text(), f"docs/guide/python.md lacks {program.name}"
