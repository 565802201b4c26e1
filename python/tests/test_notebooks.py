# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""The notebooks of examples/notebooks run, and print what they have. Their pictures may differ by a version of matplotlib."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parents[2] / "examples/notebooks").glob("*.ipynb"))


def outputs(notebook: Any) -> list[list[str]]:
    """For each cell, what it prints, and "picture" for each picture."""
    shown: list[list[str]] = []
    for cell in notebook.cells:
        of_cell = []
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stdout":
                of_cell.append(output.text)
            elif "image/png" in output.get("data", {}):
                of_cell.append("picture")
        shown.append(of_cell)
    return shown


def test_there_are_notebooks() -> None:
    assert len(NOTEBOOKS) == 3


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_prints_what_it_has(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    recorded = outputs(notebook)
    assert any(recorded)
    client = NotebookClient(notebook, timeout=None, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    assert outputs(notebook) == recorded
