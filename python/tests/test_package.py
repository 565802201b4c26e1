# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
import os
import subprocess
import sys
from pathlib import Path

import onramp
import pytest

PYTHON = Path(__file__).parent.parent


@pytest.mark.parametrize(
    ("tool", "file"), [("keys", "python/onramp/keys.py"), ("reference", "docs/python.md")]
)
def test_what_is_generated_is_as_its_source_says(tool: str, file: str) -> None:
    made = subprocess.run([sys.executable, PYTHON / "tools" / tool], check=True, capture_output=True, text=True).stdout
    assert made == (PYTHON.parent / file).read_text(), f"run: python/tools/{tool} > {file}"


def test_a_type_checker_finds_nothing_and_finds_wrong_keys(tmp_path: Path) -> None:
    environment = os.environ | {"MYPY_CACHE_DIR": str(tmp_path)}
    mypy = [sys.executable, "-m", "mypy"]
    checked = subprocess.run(mypy, cwd=PYTHON, env=environment, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout
    wrong = tmp_path / "wrong.py"
    wrong.write_text('import onramp\nonramp.Scenario(title="t", onramp={"treshold": "40 us"}, host={"qdisc": "fifo"})\n')
    found = subprocess.run([*mypy, "--strict", wrong], cwd=tmp_path, env=environment, capture_output=True, text=True)
    for words in ("treshold", '"duration"', "fifo"):
        assert words in found.stdout, found.stdout


def test_the_import_loads_no_large_library() -> None:
    loaded = "import sys, onramp; print([m for m in ('pyarrow', 'matplotlib', 'numpy') if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", loaded], check=True, capture_output=True, text=True).stdout
    assert shown == "[]\n"


def test_it_has_the_version_of_the_command() -> None:
    cargo = (PYTHON.parent / "Cargo.toml").read_text()
    assert f'\nversion = "{onramp.__version__}"\n' in cargo
