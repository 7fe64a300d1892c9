"""Similarity by WordNet: on a small net of nouns in its format, and on the real one where it is."""

from pathlib import Path

import numpy as np
import pytest

import haptera
from haptera.analyses.dependencies.wordnet import wordnet_folder, wordnet_similarity
from haptera.errors import HapteraError

ABOVE = {
    "entity": "",
    "animal": "entity",
    "dog": "animal",
    "basset_hound": "dog",
    "cat": "animal",
    "vehicle": "entity",
    "crane": "animal",
    "machine_crane": "vehicle",
}


@pytest.fixture
def folder(tmp_path):
    """A few nouns as WordNet keeps them: the number of each is its place in the file, and a licence comes first."""
    places, data = {}, b"  1 a licence in lines that begin with blanks\n"
    for word, above in ABOVE.items():
        places[word] = len(data)
        pointers = f"002 @ {places[above]:08d} n 0000 ~ 00000000 n 0000" if above else "000"
        data += f"{places[word]:08d} 03 n 02 {word} 0 other_{word} 0 {pointers} | a noun \n".encode()
    senses = {word: [place] for word, place in places.items()} | {"crane": [places["crane"], places["machine_crane"]]}
    lines = [
        f"{word} n {len(own)} 1 @ {len(own)} 1 {' '.join(f'{each:08d}' for each in own)}  "
        for word, own in senses.items()
    ]
    (tmp_path / "data.noun").write_bytes(data)
    (tmp_path / "index.noun").write_text("\n".join(["  1 a licence", *lines]) + "\n")
    return tmp_path, places


def test_similarity_falls_with_the_steps_over_the_nearest_common_ancestor(folder):
    found, unknown = wordnet_similarity(["dog", "cat", "basset_hound", "vehicle", "crane"], folder[0])
    steps = [[0, 2, 1, 3, 2], [2, 0, 3, 3, 2], [1, 3, 0, 4, 3], [3, 3, 4, 0, 3], [2, 2, 3, 3, 0]]
    np.testing.assert_allclose(found, 1 / (1 + np.array(steps)))
    assert unknown == []


def test_names_are_read_as_people_write_them(folder):
    path, places = folder
    names = [
        "Basset hound",
        "mutt, dog",
        "house-boat / cat",
        "big vehicle",
        f"n{places['machine_crane']:08d}",
        "dog (7)",
    ]
    found, unknown = wordnet_similarity(names, path)
    plain, _ = wordnet_similarity(["basset_hound", "dog", "cat", "vehicle", "machine_crane", "dog"], path)
    np.testing.assert_array_equal(found, plain)
    assert unknown == []


def test_a_class_that_wordnet_does_not_know_counts_as_like_all_others(folder):
    found, unknown = wordnet_similarity(["dog", "zzyzx", "vehicle"], folder[0])
    assert unknown == ["zzyzx"]
    assert (found[1] == 1).all()
    assert (found[:, 1] == 1).all()
    assert found[0, 2] == pytest.approx(1 / 4)


def test_what_cannot_be_told_is_one_sentence(folder, tmp_path, monkeypatch):
    with pytest.raises(HapteraError, match=r"knows 1 of 3 names, and not '0', '1'"):
        wordnet_similarity(["0", "1", "dog"], folder[0])
    with pytest.raises(HapteraError, match="has no noun n00000007"):
        wordnet_similarity(["n00000007", "dog"], folder[0])
    monkeypatch.setenv("WNSEARCHDIR", str(tmp_path / "nowhere"))
    monkeypatch.setattr(Path, "is_file", lambda path: False)
    with pytest.raises(HapteraError, match=r"index\.noun and data\.noun, which are not in .*nowhere"):
        wordnet_folder()


def test_edges_are_ranked_by_the_names_of_the_classes(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("WNSEARCHDIR", str(folder[0]))
    generator = np.random.default_rng(0)
    logits = generator.standard_normal((400, 5))
    logits[:, 0] = logits[:, 1] + logits[:, 3] + 0.1 * generator.standard_normal(400)
    names = ["dog", "basset hound", "cat", "vehicle", "gadget"]
    np.savez(tmp_path / "logits.npz", logits=logits, targets=logits.argmax(1), classes=names)
    found = haptera.dependencies(tmp_path / "logits.npz", similarity="wordnet", resamples=0)
    rows = found.pairs.set_index(["class", "on"])
    assert rows["similarity"][0, 1] == pytest.approx(1 / 2)
    assert rows["similarity"][0, 3] == pytest.approx(1 / 4)
    assert rows["score"][0, 3] > rows["score"][0, 1]
    assert "unlike by wordnet" in found.summary()
    assert any("WordNet does not know 1 of the names (gadget)" in note for note in found.notes)


@pytest.mark.real
def test_the_real_wordnet_says_what_others_read_there():
    try:
        folder = wordnet_folder()
    except HapteraError as error:
        pytest.skip(str(error))
    found, unknown = wordnet_similarity(["dog", "cat", "truck", "automobile", "n02084071", "Ankle boot"], folder)
    assert unknown == []
    assert found[0, 1] == pytest.approx(0.2)  # as nltk prints path_similarity of dog.n.01 and cat.n.01
    assert found[2, 3] == pytest.approx(1 / 3)
    assert found[0, 4] == 1
