"""The examples: what they print, the tutorial and the gallery."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import aimd
import compare
import pytest

EXAMPLES = Path(compare.__file__).parent


def test_aimd_prints_two_rates_that_are_alike(capsys: pytest.CaptureFixture[str]) -> None:
    aimd.main()
    reno, own = capsys.readouterr().out.splitlines()
    assert reno.startswith("reno: ") and own == reno.replace("reno", "Aimd")
    lines = (EXAMPLES / "aimd.py").read_text().splitlines()
    start = lines.index("class Aimd(bentpipe.Scheme):")
    assert lines.index("def main() -> None:") - start <= 30


def test_schemes_are_compared(capsys: pytest.CaptureFixture[str]) -> None:
    compare.main()
    said = capsys.readouterr().out
    assert "newreno  loss 0.0001" in said and "goodput falls below 1 Mbit/s at loss = " in said


@pytest.mark.slow
def test_the_tutorial_runs(tmp_path: Path) -> None:
    pytest.importorskip("ipykernel")
    pytest.importorskip("matplotlib")
    nbclient: Any = pytest.importorskip("nbclient")
    nbformat: Any = pytest.importorskip("nbformat")
    notebook = nbformat.read(EXAMPLES / "tutorial.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells), "outputs are not committed"
    done = nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": tmp_path}}
    ).execute()
    kinds = [set(output.get("data", ())) for cell in done.cells for output in cell.get("outputs", ())]
    assert sum("image/png" in kind for kind in kinds) == 2 and sum("text/html" in kind for kind in kinds) >= 2
    assert re.search("goodput falls (to|below) 1 Mbit/s at loss = ", json.dumps(done))


@pytest.mark.slow
def test_the_gallery_has_ten_figures(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    import gallery

    gallery.main(tmp_path)
    pictures = list(tmp_path.glob("*.png"))
    assert len(pictures) == len(gallery.FIGURES) == 10
    assert all(picture.stat().st_size > 8000 for picture in pictures)
