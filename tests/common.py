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
