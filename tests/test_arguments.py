"""Arguments: what fits is read, anything else is refused by name, with what came and what was expected."""

import re
from fractions import Fraction

import numpy as np
import pytest

from attn_helpers import arguments

HUGE = 2**63


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (lambda: arguments.as_array("x", [[1, 2]]), np.array([[1, 2]])),
        (lambda: arguments.as_real("x", [1, 2]), np.array([1.0, 2.0])),
        (lambda: arguments.as_real("x", np.uint8([3])), np.array([3.0])),
        (lambda: arguments.as_real("x", np.float32([0.5])), np.float32([0.5])),
        (lambda: arguments.as_real("x", np.array([0.5], ">f4")), np.float32([0.5])),
    ],
)
def test_arrays_are_read_with_their_dtype(call, expected):
    found = call()
    assert np.array_equal(found, expected)
    assert (found.dtype, found.dtype.isnative) == (expected.dtype, True)


def test_an_array_that_fits_is_not_copied():
    x = np.ones((2, 3))
    assert arguments.as_array("x", x) is x
    assert np.shares_memory(arguments.as_real("x", x), x)


@pytest.mark.parametrize("one", [2, 2.0, np.float32(2), np.int8(2), np.array(2.0), Fraction(2)])
def test_a_number_is_read_as_float(one):
    found = arguments.as_number("scale", one)
    assert (type(found), found) == (float, 2.0)


def test_nan_and_infinity_are_numbers():
    assert np.isnan(arguments.as_number("scale", np.nan))
    assert arguments.as_number("scale", -np.inf) == -np.inf


@pytest.mark.parametrize("value", [3, np.int8(3), np.array(3)])
def test_a_whole_number_is_read_as_int(value):
    for least, most in ((None, None), (3, None), (None, 3), (3, 3)):
        found = arguments.as_whole("n", value, least, most)
        assert (type(found), found) == (int, 3)


def test_the_whole_numbers_of_int64_and_no_others():
    assert arguments.as_whole("n", -HUGE) == -HUGE
    assert arguments.as_whole("n", HUGE - 1) == HUGE - 1


@pytest.mark.parametrize("value", [True, False, np.True_])
def test_a_switch_is_read_as_bool(value):
    assert arguments.check_switch("causal", value) is bool(value)


def test_a_name_and_a_dict_and_a_dtype():
    given = {"a": 1}
    assert arguments.index_of("head", "b", ("a", "b")) == 1
    assert arguments.as_dict("maps", given, "{title: map}", 1) is given
    assert arguments.as_dict("maps", {}, "{title: map}") == {}
    assert arguments.as_dtype("float32") == np.float32
    assert {arguments.as_dtype(none) for none in (None, "no dtype", 5)} == {np.dtype(object)}


def test_axes_before_the_last_two_broadcast():
    arguments.check_axes("Q", np.ones((1, 2)), "(n, d)")
    assert arguments.check_lead(Q=np.ones((2, 1, 3, 4)), K=np.ones((5, 6, 4))) == (2, 5)
    assert arguments.check_lead(Q=np.ones((3, 4))) == ()


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: arguments.as_array("x", np.ma.array([1])),
            TypeError,
            "x is a masked array: pass its data, and what to hide as mask",
        ),
        (lambda: arguments.as_array("x", [[1], [1, 2]]), ValueError, "x is not a regular array: setting an array"),
        (lambda: arguments.as_real("x", np.array([], object)), TypeError, "x holds objects, not numbers"),
        (lambda: arguments.as_real("x", ["a"]), TypeError, "x has dtype <U1, but needs real numbers"),
        (lambda: arguments.as_real("x", [True]), TypeError, "x has dtype bool, but needs real numbers"),
        (lambda: arguments.as_real("x", [1j]), TypeError, "x has dtype complex128, but needs real numbers"),
        (lambda: arguments.as_number("scale", "1"), TypeError, "scale is '1', but must be one number"),
        (lambda: arguments.as_number("scale", True), TypeError, "scale is True, but must be one number"),
        (lambda: arguments.as_number("scale", np.ones(1)), TypeError, "scale is array([1.]), but must be one number"),
        (
            lambda: arguments.as_number("scale", np.timedelta64(1, "s")),
            TypeError,
            f"scale is {np.timedelta64(1, 's')!r}, but must be one number",
        ),
        (
            lambda: arguments.as_number("scale", 10**400),
            TypeError,
            "scale is beyond what float64 can hold, but must be one number",
        ),
        (lambda: arguments.as_whole("n", 1.0), TypeError, "n is 1.0, but must be one whole number"),
        (lambda: arguments.as_whole("n", True), TypeError, "n is True, but must be one whole number"),
        (lambda: arguments.as_whole("n", None), TypeError, "n is None, but must be one whole number"),
        (lambda: arguments.as_whole("n", HUGE), ValueError, "n is beyond int64, from -2**63 to 2**63 - 1"),
        (lambda: arguments.as_whole("n", -HUGE - 1), ValueError, "n is beyond int64, from -2**63 to 2**63 - 1"),
        (lambda: arguments.as_whole("n", 0, 1), ValueError, "n is 0, but must be 1 or more"),
        (lambda: arguments.as_whole("n", 0, 1, 9), ValueError, "n is 0, but must be from 1 to 9"),
        (lambda: arguments.as_whole("n", 10, 1, 9), ValueError, "n is 10, but must be from 1 to 9"),
        (lambda: arguments.check_switch("causal", 1), TypeError, "causal is 1, but must be True or False"),
        (lambda: arguments.index_of("head", "c", ("a", "b")), ValueError, "head is 'c', but must be one of 'a', 'b'"),
        (lambda: arguments.index_of("head", 0, ("a", "b")), ValueError, "head is 0, but must be one of 'a', 'b'"),
        (
            lambda: arguments.as_dict("maps", [1], "{title: map}"),
            TypeError,
            "maps is of type list, but must be a dict {title: map}",
        ),
        (
            lambda: arguments.as_dict("maps", {}, "{title: map}", 1),
            ValueError,
            "maps has 0 entries, but must be a dict {title: map} with 1 or more",
        ),
        (
            lambda: arguments.check_axes("Q", np.ones(3), "(n, d)"),
            ValueError,
            "Q has shape (3,), but needs at least two axes (n, d); for a single vector write Q[None, :]",
        ),
        (
            lambda: arguments.check_lead(Q=np.ones((2, 3, 4)), K=np.ones((3, 3, 4))),
            ValueError,
            "the axes before the last two do not broadcast: Q (2, 3, 4), K (3, 3, 4)",
        ),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()
