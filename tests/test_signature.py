import dataclasses
import re
from fractions import Fraction

import numpy as np
import pytest

from labeldp import Channel, LabelSpace, Prior, StructureError, design_on_grid, design_unbiased, signature

PRIOR = Prior(LabelSpace.integers(0, 2), [0.6, 0.25, 0.15])


def test_the_letters_of_the_toy_example() -> None:
    assert signature(design_unbiased(PRIOR, 0.5)).columns == ("ULL", "UUL", "LUU", "LLU")


def test_the_letters_agree_with_the_exact_law() -> None:
    channel = design_unbiased(Prior.uniform(LabelSpace.integers(0, 9)), 2)
    for column, letters in zip(channel.weights().T, signature(channel).columns, strict=True):
        assert re.fullmatch("L*U+L*", letters)
        assert "".join("U" if weight == max(column) else "L" for weight in column) == letters


def test_a_grid_design_has_cells_that_are_neither() -> None:
    with pytest.raises(StructureError, match="only partly"):
        signature(design_on_grid(Prior.uniform(LabelSpace.integers(0, 9)), 1, mesh=31))


def test_one_bin_has_no_l() -> None:
    offsets, cuts = np.zeros(3, int), np.array([0, 1])
    one = Channel(PRIOR.space, Fraction(1), 1, 1, offsets, cuts, 1 << 63, np.array([1.0]), "one bin")
    with pytest.raises(StructureError, match="both letters"):
        signature(one)


def test_outputs_that_run_backwards() -> None:
    channel = design_unbiased(PRIOR, 0.5)
    with pytest.raises(StructureError, match="do not ascend"):
        signature(dataclasses.replace(channel, cell_outputs=channel.cell_outputs[::-1]))


def test_more_than_2k_outputs() -> None:
    channel = design_unbiased(Prior.uniform(LabelSpace.integers(0, 1)), 1)
    cuts = np.arange(0, channel.strip + 1, channel.strip // 8)[:9]
    cuts[-1] = channel.strip
    finer = dataclasses.replace(channel, cuts=cuts, cell_outputs=np.arange(8.0))
    with pytest.raises(StructureError, match="more than 2k = 4"):
        signature(finer)
