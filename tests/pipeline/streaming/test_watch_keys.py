"""Tables instead of sorting: the same as sorting, for dense and for scattered numbers."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from ordercast.pipeline.streaming.watch_keys import first_of_each, pair_keys, ranks


@pytest.mark.parametrize("most", [3, 200, 2**40, 2**63 - 1])
@pytest.mark.parametrize("majors", [1, 5, 2**31])
@pytest.mark.parametrize("count", [0, 1, 50, 3000])
def test_tables_say_what_sorting_says(most: int, majors: int, count: int) -> None:
    random = Random(count)
    least = random.choice((0, most // 2))
    pairs = [(random.randrange(majors), random.randint(least, most)) for _ in range(count)]
    pairs += random.choices(pairs, k=count // 3)
    different = sorted(set(pairs))
    major, minor = np.array(pairs, np.int64).reshape(-1, 2).T
    keys, room = pair_keys(major, minor)
    assert not len(keys) or (keys.min() >= 0 and keys.max() < room)
    assert first_of_each(keys, room).tolist() == [pairs.index(pair) for pair in different]
    place = {pair: at for at, pair in enumerate(different)}
    assert ranks(keys, room).tolist() == [place[pair] for pair in pairs]
