"""Read the arguments of public functions: what fits comes back, for anything else an error names the argument,
what came and what was expected."""

import numbers
import operator

import numpy as np


def as_array(name, values):
    """values as an array, not a copy where they are one."""
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError(f"{name} is a masked array: pass its data, and what to hide as mask")
    try:
        return np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is not a regular array: {error}") from None


def as_real(name, values):
    """values as a floating-point array; integers become float64."""
    found = as_array(name, values)
    if found.size == 0 and found.dtype.kind == "O":
        raise TypeError(f"{name} holds objects, not numbers")
    if found.dtype.kind in "iu":
        return found.astype(np.float64)
    if found.dtype.kind != "f":
        raise TypeError(f"{name} has dtype {found.dtype}, but needs real numbers")
    return found.astype(found.dtype.newbyteorder("="), copy=False)


def as_number(name, value):
    """A real number as a float, NaN and infinity included."""
    found = value[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if not isinstance(found, numbers.Real) or isinstance(found, (bool, np.timedelta64)):
        raise TypeError(f"{name} is {value!r}, but must be one number")
    try:
        return float(found)
    except OverflowError:
        raise TypeError(f"{name} is beyond what float64 can hold, but must be one number") from None


def as_whole(name, value, least=None, most=None):
    """A whole number that int64 can hold, from least on, up to most."""
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        found = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, but must be one whole number") from None
    if not -(2**63) <= found < 2**63:
        raise ValueError(f"{name} is beyond int64, from -2**63 to 2**63 - 1")
    if (least is not None and found < least) or (most is not None and found > most):
        bounds = f"{least} or more" if most is None else f"from {least} to {most}"
        raise ValueError(f"{name} is {found}, but must be {bounds}")
    return found


def check_switch(name, value):
    """True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} is {value!r}, but must be True or False")
    return bool(value)


def index_of(name, value, known):
    """Where a string stands among those known."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name} is {value!r}, but must be one of {', '.join(map(repr, known))}")
    return known.index(value)


def as_dict(name, given, form, least=0):
    """A dict with that many entries or more; form says of what."""
    if not isinstance(given, dict):
        raise TypeError(f"{name} is of type {type(given).__name__}, but must be a dict {form}")
    if len(given) < least:
        raise ValueError(f"{name} has {len(given)} entries, but must be a dict {form} with {least} or more")
    return given


def as_dtype(given):
    """The dtype as NumPy reads it; that of objects where it reads none."""
    try:
        return np.dtype(object if given is None else given)
    except (TypeError, ValueError):
        return np.dtype(object)


def check_axes(name, found, axes):
    """Refuse an array of fewer than two axes; axes says which they are."""
    if found.ndim < 2:
        raise ValueError(
            f"{name} has shape {found.shape}, but needs at least two axes {axes}; "
            f"for a single vector write {name}[None, :]"
        )


def check_lead(**arrays):
    """The shape to which the axes before the last two broadcast."""
    try:
        return np.broadcast_shapes(*(found.shape[:-2] for found in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {found.shape}" for name, found in arrays.items())
        raise ValueError(f"the axes before the last two do not broadcast: {shapes}") from None
