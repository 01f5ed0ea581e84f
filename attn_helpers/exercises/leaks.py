"""An exercise of notebook 5: the reader's leak test, tried on layers with and without a leak."""

from typing import NamedTuple

import numpy as np

from attn_helpers.attention import scaled_dot_product_attention
from attn_helpers.exercises.mistakes import draw
from attn_helpers.judging import judge, yes_or_no
from attn_helpers.masks import causal_mask


def _detector(rows, seen, verdict=any):
    """A leak test that changes each of rows(n) in turn, compares the output rows seen(j) and sums up with verdict."""

    def detector(layer, X):
        found = []
        for j in rows(len(X)):
            changed = X.copy()
            changed[j] += 1
            found.append(not np.allclose(layer(changed)[seen(j)], layer(X)[seen(j)]))
        return verdict(found)

    return detector


def _reorders(layer, X):
    """A leak test that only turns round the order of the later rows."""
    orders = [[*range(i + 1), *range(len(X) - 1, i, -1)] for i in range(len(X))]
    return any(not np.allclose(layer(X[order])[: i + 1], layer(X)[: i + 1]) for i, order in enumerate(orders))


def _before(j):
    return slice(0, j)


_AT_OR_AFTER = "the changed row, or one behind it, is compared as well and may change: compare only the rows before it"
_BACKWARDS = "the rows behind the changed one are compared, but the past may change the future: compare those before it"
_ROW_1 = "only row 1 is changed (does the loop return in its first round?): change each row in turn"

_FINDS_LEAK = [
    (
        lambda layer, X: False,
        "your test finds no leak at all, not even without a mask: change a later row of a COPY of X, clearly, and "
        "compare the numbers (not the shapes) of layer(copy) and layer(X) in the rows before it",
    ),
    (lambda layer, X: True, "your test calls every layer leaking, even one that returns only zeros"),
    (
        _detector(range, _before, verdict=lambda found: not any(found)),
        "the verdict is inverted: True stands for a leak, an earlier row that changed",
    ),
    (_detector(range, lambda j: slice(None)), _AT_OR_AFTER),
    (_detector(range, lambda j: slice(0, j + 1)), _AT_OR_AFTER),
    (_detector(range, lambda j: slice(j, None)), _AT_OR_AFTER),
    (_detector(lambda n: [n - 1], lambda j: slice(None)), _AT_OR_AFTER),
    (_detector(lambda n: [0], lambda j: slice(None)), _AT_OR_AFTER),
    (_detector(range, lambda j: slice(j + 1, None)), _BACKWARDS),
    (_detector(lambda n: [0], lambda j: slice(1, None)), _BACKWARDS),
    (
        _detector(lambda n: [n - 1], _before),
        "only the last row is changed: a leak from another row stays hidden, so change each row in turn",
    ),
    (
        _detector(lambda n: [n - 1], lambda j: slice(0, min(j, 1))),
        "only the last row is changed and only the first output row looked at: change each row, look at all before it",
    ),
    (
        _detector(range, lambda j: slice(0, min(j, 1))),
        "only the first output row is looked at: compare all rows before the changed one",
    ),
    (
        _detector(range, lambda j: slice(max(j - 1, 0), j)),
        "only the row just before the changed one is looked at: compare all rows before it",
    ),
    (_detector(lambda n: [1], _before), _ROW_1),
    (_detector(lambda n: [1] if n > 1 else [], _before), _ROW_1),
    (
        _detector(lambda n: [n // 2], _before),
        "only the row in the middle is changed: change each row in turn",
    ),
    (
        _detector(lambda n: range(1, n), _before, verdict=all),
        "all later rows must leak before your test says so: one is enough, use any",
    ),
    (
        _reorders,
        "the later rows are only reordered, and attention without a mask gives the same mean: give a row new numbers",
    ),
]

_PROJECTIONS = draw((3, 2), (3, 2), (3, 4))


def _layer(mask, keys=lambda K: K, values=lambda V: V):
    """Attention of X on itself with the mask mask(n); keys and values may be changed before."""

    def layer(X):
        Q, K, V = (X @ W for W in _PROJECTIONS)
        return scaled_dot_product_attention(Q, keys(K), values(V), mask=mask(len(X)))[0]  # (n, 4)

    return layer


def _also(queries, keys):
    """A causal mask that lets some queries attend to some later keys as well; slices."""

    def mask(n):
        allowed = causal_mask(n)
        allowed[queries, keys] = True
        return allowed

    return mask


def _every(n):
    return np.ones((n, n), dtype=bool)


def _filled(fill):
    """The later keys are not forbidden: their scores get a finite number added."""
    return lambda n: np.where(causal_mask(n), 0.0, fill)


def _heads(*masks):
    return lambda X: np.concatenate([_layer(mask)(X) for mask in masks], axis=1)  # (n, 4 * heads)


def _mean(X):
    """The mean row, zeros where there is no row."""
    return X.sum(axis=0) / max(len(X), 1)


def _through(feature):
    """A causal layer that adds the mean of one feature over all rows."""
    return lambda X: _layer(causal_mask)(X) + _mean(X)[feature]


def _cancelling(X):
    """What leaks raises one column and lowers another, so that the sum of a row stays."""
    return _layer(causal_mask)(X) + _mean(X)[0] * np.array([0.0, 1.0, -1.0, 0.0])


class _Case(NamedTuple):
    """A layer, X with n rows, whether there is a leak, what to call the layer and what to do if the test is wrong."""

    layer: object
    n: int
    leaks: bool
    name: str
    cure: str


_EACH = "change each row in turn, clearly, and compare all rows before it exactly (np.array_equal)"
_SMALL = "make the change larger, or the tolerance smaller, or compare exactly (np.array_equal)"
_COLUMNS = "compare every column of the output by itself, not one of them or their sum"
_FEATURES = "change all features of a row"
_OWN = (
    "the changed row and those behind it may change, so compare only the rows before it; a shorter "
    "input rounds differently, so compare prefixes with np.allclose"
)

_CASES = [
    _Case(_layer(causal_mask), 5, False, "causal attention", _OWN),
    _Case(_layer(_every), 5, True, "attention without a mask", _EACH),
    _Case(_layer(lambda n: causal_mask(n, offset=1)), 5, True, "attention that sees one token ahead", _EACH),
    _Case(lambda X: X @ _PROJECTIONS[2], 4, False, "a layer that takes each row by itself", _OWN),
    _Case(lambda X: np.zeros_like(X), 4, False, "a layer that returns zeros", "nothing changes there"),
    _Case(_layer(lambda n: causal_mask(n, offset=-1)), 5, False, "attention to earlier rows only", _OWN),
    _Case(
        _layer(lambda n: ~causal_mask(n, offset=-1)),
        5,
        True,
        "attention backwards, to the row itself and later ones",
        _EACH,
    ),
    _Case(_layer(_also(np.s_[:1], np.s_[:])), 5, True, "a layer whose row 0 sees everything", _EACH),
    _Case(_layer(_also(np.s_[:1], np.s_[1:2])), 5, True, "a layer whose row 0 sees row 1", _EACH),
    _Case(_layer(_also(np.s_[-2:-1], np.s_[-1:])), 6, True, "a layer whose last row but one sees the last", _EACH),
    _Case(_layer(_also(np.s_[:], np.s_[-1:])), 5, True, "a layer that always sees the last row", _EACH),
    _Case(_layer(_also(np.s_[1:2], np.s_[3:4])), 6, True, "a layer whose row 1 sees row 3", _EACH),
    _Case(_layer(_also(np.s_[:1], np.s_[-1:])), 4, True, "a layer whose row 0 sees the last row", _EACH),
    _Case(lambda X: 0 * X + _mean(X), 5, True, "a mean over all rows, without attention", _EACH),
    _Case(
        lambda X: np.cumsum(X, axis=0) / np.arange(1, len(X) + 1)[:, None],
        5,
        False,
        "a running mean over the rows so far",
        _OWN,
    ),
    _Case(_layer(_filled(-2.0)), 5, True, "attention with a finite fill, which leaks a little", _SMALL),
    _Case(_layer(_filled(-7.0)), 5, True, "attention that leaks a thousandth of its weight", _SMALL),
    _Case(
        _layer(causal_mask, keys=lambda K: K / (1 + np.abs(K).max(axis=0, initial=0))),
        5,
        True,
        "causal attention whose keys are divided by their largest size over all rows",
        _EACH,
    ),
    _Case(
        _layer(causal_mask, values=lambda V: V - _mean(V)),
        5,
        True,
        "causal attention whose values are centred over all rows",
        _EACH,
    ),
    _Case(_heads(causal_mask, _every), 4, True, "two heads, the second without a mask", _COLUMNS),
    _Case(_heads(_every, causal_mask), 4, True, "two heads, the first without a mask", _COLUMNS),
    _Case(_through(0), 4, True, "a layer that leaks the first feature alone", _FEATURES),
    _Case(_through(-1), 4, True, "a layer that leaks the last feature alone", _FEATURES),
    _Case(_cancelling, 4, True, "a layer whose leak leaves the sum of each row", _COLUMNS),
    _Case(lambda X: _layer(_every)(X), 1, False, "a layer with one row", "there is no later row, so nothing can leak"),
]


def finds_leak(answer):
    """answer(layer, X (n, d)) -> True if a row of layer(X) depends on a later row of X, else False."""
    X = draw((6, 3))[0]
    return judge(
        answer,
        cases=[(case.layer, X[: case.n]) for case in _CASES],
        right=lambda layer, X: _case_of(layer).leaks,
        mistakes=_FINDS_LEAK,
        hint="layer is a function: call it, layer(X) has a row for each row of X, and X may have a single one",
        praise=f"your test is right about {len(_CASES)} layers, {sum(case.leaks for case in _CASES)} of them leaking.",
        explain=_wrong_verdict,
        read=yes_or_no,
    )


def _case_of(layer):
    return next(case for case in _CASES if case.layer is layer)


def _wrong_verdict(case, result, target):
    wrong = _case_of(case[0])
    says = "finds no leak in" if wrong.leaks else "finds a leak in"
    return f"your test {says} {wrong.name}: {wrong.cure}."
