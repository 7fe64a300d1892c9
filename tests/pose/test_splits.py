"""Splits by individual and species, and the drawn animals they are tried on."""

import numpy as np
import pytest

from haptera.errors import HapteraError
from haptera.pose import drawn_animals, leave_species_out, split_individuals


def test_nobody_is_on_both_sides_and_every_frame_is_somewhere(animals):
    split = split_individuals(animals, 2, fraction=0.3)
    inside = set(animals.individuals[split.train])
    assert len(inside) == 2
    assert set(animals.individuals[split.within]) == inside
    assert not inside & set(animals.individuals[split.out])
    assert sorted(np.concatenate([split.train, split.within, split.out])) == list(range(len(animals)))
    assert [int((animals.individuals[split.train] == name).sum()) for name in inside] == [3, 3]
    assert split.names()[split.train].tolist() == ["train"] * 6


def test_shuffles_differ_repeat_and_a_smaller_share_is_part_of_a_larger(animals):
    small, large = (split_individuals(animals, 2, fraction=share, shuffle=1) for share in (0.1, 0.5))
    assert set(small.train) < set(large.train)
    assert np.array_equal(small.out, large.out)
    again = split_individuals(animals, 2, fraction=0.5, shuffle=1)
    assert np.array_equal(again.train, large.train)
    drawn = {tuple(np.unique(animals.individuals[split_individuals(animals, 2, shuffle=k).train])) for k in range(8)}
    assert len(drawn) > 1


def test_an_individual_with_one_frame_is_learnt_from_and_not_tested_within(animals):
    rows = np.concatenate([[0], np.flatnonzero(animals.individuals != animals.individuals[0])])
    few = animals.select(rows)
    for shuffle in range(6):
        split = split_individuals(few, 2, fraction=0.5, shuffle=shuffle)
        if 0 in split.train:
            assert animals.individuals[0] not in few.individuals[split.within]
            break
    else:
        pytest.fail("no shuffle drew the individual with one frame")


def test_a_species_is_left_out():
    animals = drawn_animals(4, 3, height=32, width=48, species=("horse", "cow"))
    split = leave_species_out(animals, "cow", fraction=0.5)
    assert set(animals.species[split.out]) == {"cow"}
    assert set(animals.species[split.train]) == set(animals.species[split.within]) == {"horse"}
    with pytest.raises(HapteraError, match=r"unknown species 'cov'; did you mean 'cow'"):
        leave_species_out(animals, "cov")


def test_impossible_splits_are_refused(animals):
    for number in (0, 4):
        with pytest.raises(HapteraError, match=f"{number} of 4 individuals for training"):
            split_individuals(animals, number)
    with pytest.raises(HapteraError, match=r"fraction is 1\.5"):
        split_individuals(animals, 2, fraction=1.5)


def test_drawn_animals_are_a_function_of_the_seed_alone():
    few, more = drawn_animals(1, 2, seed=5, height=48, width=64), drawn_animals(3, 4, seed=5, height=48, width=64)
    assert np.array_equal(few.images(np.arange(2)), more.images(np.arange(2)))
    other = drawn_animals(1, 2, seed=6, height=48, width=64)
    assert not np.array_equal(few.images(np.arange(2)), other.images(np.arange(2)))


def test_drawn_animals_have_their_keypoints_inside_and_poses_that_move():
    animals = drawn_animals(3, 12, missing=0.0)
    assert animals.keypoints.shape == (36, 22, 2)
    assert np.isfinite(animals.keypoints).mean() > 0.97  # a leg may leave the frame
    foot = animals.parts.index("near_front_foot")
    relative = animals.keypoints[:12, foot] - animals.keypoints[:12, animals.parts.index("wither")]
    assert np.nanstd(relative[:, 0]) > 2
    # The eye is drawn dark on the head: darker than the head between eye and nose, for most individuals.
    images = animals.images(np.arange(36)).mean(1).numpy()
    eye, nose = (animals.keypoints[:, animals.parts.index(part)] for part in ("eye", "nose"))
    between = (eye + nose) / 2
    at = [images[np.arange(36), p[:, 1].round().astype(int), p[:, 0].round().astype(int)] for p in (eye, between)]
    assert np.median(at[1] - at[0]) > 0.05


def test_the_share_of_missing_labels_is_as_asked():
    animals = drawn_animals(2, 40, height=48, width=64, missing=0.3)
    assert np.isnan(animals.keypoints[:, :, 0]).mean() == pytest.approx(0.3, abs=0.04)
    with pytest.raises(HapteraError, match="missing is 1"):
        drawn_animals(1, 1, missing=1.0)
    with pytest.raises(HapteraError, match=r"unknown species 'hors'; did you mean 'horse'"):
        drawn_animals(1, 1, species=["hors"])
