"""What several test modules use."""

import functools
import warnings

import numpy as np
from hypothesis import HealthCheck, settings

settings.register_profile("patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")  # a busy machine is no failure

INF, NAN = np.inf, np.nan


def silent(function):
    """The function, failing on any floating-point flag and any warning."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            return function(*args, **kwargs)

    return call


def qkv(n_q=3, n_kv=5, d_k=4, d_v=6, lead=(), dtype=np.float64, seed=0):
    """Query, key and value of unequal sizes, so that a mixed-up axis shows."""
    rng = np.random.default_rng(seed)
    shapes = (*lead, n_q, d_k), (*lead, n_kv, d_k), (*lead, n_kv, d_v)
    return tuple(rng.normal(size=shape).astype(dtype) for shape in shapes)


LEADING_AXES = [  # of query, key and value
    ((), (2, 3), (2, 3)),
    ((2, 3), (3,), (1, 3)),
    ((2, 1), (1, 3), (2, 3)),
    ((2, 3), (), ()),
    ((), (2, 3), ()),
    ((), (), (4, 2)),
]


def broadcasting(lead, masked, qkv=qkv):
    """Query, key and value with such leading axes, and a mask with all of them: "", "boolean" or "float"."""
    query, key, value = (qkv(lead=axes, seed=seed)[seed] for seed, axes in enumerate(lead))
    added = np.random.default_rng(7).normal(size=(*np.broadcast_shapes(*lead), query.shape[-2], key.shape[-2]))
    return query, key, value, {"": None, "boolean": added < 0.3, "float": added}[masked]


def slope(function, array, step=1e-5):
    """The derivative of a number by each number of an array, which function reads, by fourth-order differences."""
    found = np.empty(array.shape)
    for i in np.ndindex(array.shape):
        kept, values = array[i], []
        for k in (-2, -1, 1, 2):
            array[i] = kept + k * step
            values.append(function())
        array[i] = kept
        found[i] = (values[0] - 8 * values[1] + 8 * values[2] - values[3]) / (12 * step)
    return found


def assert_close(ours, expected, rtol=1e-6):
    """Within rtol of the largest number."""
    np.testing.assert_allclose(ours, expected, rtol=0, atol=rtol * np.abs(expected).max())
