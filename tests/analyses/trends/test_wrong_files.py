"""Files that cannot be read are refused by what is wrong with them."""

import numpy as np
import pytest
from tests.analyses.trends.test_reading import NAMES

from haptera.analyses.trends.reading import read_side
from haptera.errors import HapteraError

CSV = "model,accuracy\n"
WRONG_CSV = {
    "no column of models": ("name,accuracy\n1,0.5\n", "has no column 'model'"),
    "no accuracy": ("model,acuracy\na,0.5\n", "did you mean 'acuracy'"),
    "a word for a number": (CSV + "a,0.5\nb,good\n", "b has no number for accuracy"),
    "twice the same name": (CSV + "a,0.5\na,0.6\n", "'a' comes 2 times"),
    "more than all": (CSV + "a,0.5\nb,120\n", "b has the accuracy 1.2"),
    "some percent signs": (CSV + "a,50%\nb,0.6\n", "b has no percent sign"),
    "two columns of a name": ("model,accuracy,accuracy \na,0.5,0.6\n", "'accuracy' comes twice"),
    "less than nothing": (CSV + "a,-0.5\n", "a has the accuracy -0.5"),
    "no number of examples": ("model,accuracy,n\na,0.5,0\n", "a has n = 0"),
    "nothing at all": ("", "cannot read"),
}


@pytest.mark.parametrize("kind", WRONG_CSV)
def test_wrong_csv(kind, tmp_path):
    content, message = WRONG_CSV[kind]
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(HapteraError, match=message):
        read_side(str(tmp_path / "a.csv"))


RIGHT = np.ones((9, 20), bool)
WRONG_NPZ = {
    "no names": ({"correct": RIGHT}, "", "no array 'models'"),
    "numbers for names": ({"models": np.arange(9), "correct": RIGHT}, "", r"models are int64 \(9,\)"),
    "a row too few": ({"models": NAMES, "correct": RIGHT[:8]}, "", "9 models and 8 rows"),
    "twice the same name": ({"models": [*NAMES[:8], NAMES[0]], "correct": RIGHT}, "", "'net-0' comes 2 times"),
    "neither correct nor predictions": ({"models": NAMES, "right": RIGHT}, "", "correct, or predictions and targets"),
    "which of several": ({"models": NAMES, "a": RIGHT, "a_n": 20}, "", "name one of its arrays, as in .*:a"),
    "no such array": ({"models": NAMES, "val": RIGHT, "val_n": 20}, ":vall", "did you mean 'val'"),
    "other numbers": ({"models": NAMES, "correct": RIGHT * np.uint8(7)}, "", "correct holds 7"),
    "floats": ({"models": NAMES, "correct": RIGHT * 0.5}, "", "correct is float64"),
    "not a number": ({"models": NAMES, "correct": RIGHT * np.nan}, "", "correct is float64"),
    "targets of another length": (
        {"models": NAMES, "predictions": RIGHT * 1, "targets": np.zeros(19, int)}, "", r"targets \(19,\)",
    ),
    "logits for predictions": (
        {"models": NAMES, "predictions": RIGHT * 0.5, "targets": np.zeros(20, int)}, "", "predictions are float64",
    ),
    "ids that repeat": ({"models": NAMES, "correct": RIGHT, "ids": np.zeros(20, int)}, "", "ids repeat"),
    "ids of another length": ({"models": NAMES, "correct": RIGHT, "ids": np.arange(19)}, "", r"ids are \(19,\)"),
    "other examples for a model": (
        {"models": NAMES, "correct": RIGHT, "ids": np.arange(20) + np.arange(9)[:, None]}, "", "row 1 of ids names",
    ),
    "two names": ({"models": NAMES, "a": RIGHT}, ":a:b", "one array of"),
}  # fmt: skip


@pytest.mark.parametrize("kind", WRONG_NPZ)
def test_wrong_npz(kind, write):
    arrays, name, message = WRONG_NPZ[kind]
    with pytest.raises(HapteraError, match=message):
        read_side(write("a.npz", **arrays) + name)


def test_missing_and_foreign_files(tmp_path, write):
    write("imagenet.npz", models=NAMES, correct=RIGHT)
    with pytest.raises(HapteraError, match=r"did you mean 'imagenet\.npz'"):
        read_side(str(tmp_path / "imagnet.npz"))
    with pytest.raises(HapteraError, match="there is no file or folder"):
        read_side(str(tmp_path / "nowhere" / "a.npz"))
    (tmp_path / "a.txt").write_text("hello")
    with pytest.raises(HapteraError, match=r"is not an \.npz file"):
        read_side(str(tmp_path / "a.txt"))
    (tmp_path / "a.csv").write_text("model,accuracy\na,0.5\n")
    with pytest.raises(HapteraError, match=r"unknown column of .*a\.csv 'b'; valid: accuracy"):
        read_side(str(tmp_path / "a.csv:b"))
    with pytest.raises(HapteraError, match=r"no plan\.json"):
        read_side(f"{tmp_path}:clean")
