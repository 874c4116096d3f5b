"""Many damaged files: those of the readers, and of folders of runs that are loaded or resumed."""

import itertools

import numpy as np
import pytest

import damage
from test_readers import GOOD, explore

pytestmark = [pytest.mark.long, pytest.mark.timeout(8 * 3600)]


@pytest.mark.parametrize("kind", GOOD)
def test_files(tmp_path, sizes, figures, kind):
    explore(kind, sizes.files, tmp_path / "file", np.random.default_rng(sizes.seed))
    figures["files"] = {kind: sizes.files}


# a share of the files, for a folder takes longer to load, and to train on; damages of a file and a way in a round
@pytest.mark.parametrize(("kind", "share", "most"), [("load_run", 0.5, 30), ("resume", 0.03, 2)])
def test_folders(tmp_path, sizes, figures, kind, share, most):
    whole, rng, call = damage.trained(tmp_path / "whole"), np.random.default_rng(sizes.seed), getattr(damage, kind)
    rounds = (
        damage.damaged(whole, tmp_path / "run", rng, how, 200 if how is damage.renames else most)
        for how in itertools.cycle((damage.cuts, damage.flips, damage.renames))
    )
    count = max(1, round(share * sizes.files))
    for _ in itertools.islice(itertools.chain.from_iterable(rounds), count):
        call(tmp_path / "run")
    figures["files"] = {kind: count}
