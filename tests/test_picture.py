"""The README's picture is what its script draws."""

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_the_picture_is_drawn_by_its_script(tmp_path):
    spec = importlib.util.spec_from_file_location("picture", ROOT / "examples" / "picture.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main(str(tmp_path / "made.svg"))
    kept = (ROOT / "docs" / "images" / "funnel-and-tube.svg").read_text()
    made = (tmp_path / "made.svg").read_text()
    numbers = [[float(v) for v in re.findall(r"\d+\.\d", text)] for text in (made, kept)]
    assert numbers[0] == pytest.approx(numbers[1], abs=2.0)  # pixels: designs stop within 1e-3
    assert re.sub(r"[\d.]+", "", made) == re.sub(r"[\d.]+", "", kept)
    assert "docs/images/funnel-and-tube.svg" in (ROOT / "README.md").read_text()
