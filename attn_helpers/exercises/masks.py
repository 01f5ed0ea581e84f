"""The exercises of notebook 5 on masks made and masks used; the one on leaks is in leaks.py."""

import numpy as np

from attn_helpers.attention import softmax
from attn_helpers.exercises.mistakes import draw
from attn_helpers.judging import Refused, apart, difference, judge, numbers, show
from attn_helpers.masks import causal_mask, to_additive


def _real(n, lengths):
    """(batch, 1, 1, n), True at the tokens that are no padding."""
    return (np.arange(n) < lengths[:, None])[:, None, None, :]


def _causal_real(n, lengths):
    return causal_mask(n) & _real(n, lengths)


_ONLY_CAUSAL = "the padding is not hidden: combine with np.arange(n) < length, for each sequence"
_ONLY_PADDING = "the future is not hidden: combine with the causal part, np.tri(n, dtype=bool)"
_UPPER = "the upper triangle is allowed: query i may attend to keys 0 to i, the lower triangle"
_LENGTHS = "each sequence has its own length: compare with lengths[:, None]"

_CAUSAL_PADDING_MASK = [
    (lambda n, L: ~_causal_real(n, L), "the polarity is inverted, True = hidden: here True = may attend, so use ~"),
    (lambda n, L: np.triu(np.ones((n, n), bool)) & _real(n, L), _UPPER),
    (
        lambda n, L: ~causal_mask(n) & _real(n, L),
        "the causal part is inverted: query i may attend to keys 0 to i, the lower triangle",
    ),
    (lambda n, L: causal_mask(n) & ~_real(n, L), "the padding part is inverted: True = a token, False = padding"),
    (
        lambda n, L: ~causal_mask(n) & ~_real(n, L),
        "both parts are inverted before the &: write each with True = may attend",
    ),
    (
        lambda n, L: _causal_real(n, L).swapaxes(-1, -2),
        "the last two axes are exchanged: a row belongs to a query, a column to a key",
    ),
    (
        lambda n, L: causal_mask(n, offset=-1) & _real(n, L),
        "the diagonal is hidden: a query may attend to its own position (np.tri(n), k=0)",
    ),
    (lambda n, L: causal_mask(n, offset=1) & _real(n, L), "a query may attend one key ahead: np.tri(n), without k=1"),
    (
        lambda n, L: causal_mask(n) & _real(n, L).swapaxes(-1, -2),
        "the padding hides queries (rows): hide it as keys, an array of shape (batch, 1, 1, n)",
    ),
    (
        lambda n, L: causal_mask(n) | _real(n, L),
        "the two parts are combined with OR: a key must be allowed by both, use &",
    ),
    (lambda n, L: np.tile(causal_mask(n), (len(L), 1, 1, 1)), _ONLY_CAUSAL),
    (lambda n, L: causal_mask(n)[None, None], _ONLY_CAUSAL),
    (lambda n, L: causal_mask(n), _ONLY_CAUSAL),
    (lambda n, L: np.tile(_real(n, L), (1, 1, n, 1)), _ONLY_PADDING),
    (_real, _ONLY_PADDING),
    (lambda n, L: _real(n, L)[:, 0, 0], _ONLY_PADDING),
    (
        lambda n, L: _causal_real(n, L)[:, 0],
        "the heads axis is missing: attention refuses a mask of 3 axes for scores of 4, write (batch, 1, n, n)",
    ),
    (
        lambda n, L: _causal_real(n, L)[:, 0, ..., None],
        "the heads axis stands last: it is the second, (batch, 1, n, n)",
    ),
    (lambda n, L: _causal_real(n, L).swapaxes(0, 1), "the heads axis stands first: it is the second, (batch, 1, n, n)"),
    (
        lambda n, L: _causal_real(n, L + 1),
        "one position of padding stays visible: keys 0 to length - 1 are tokens, so compare with <, not <=",
    ),
    (lambda n, L: _causal_real(n, L - 1), "the last token is hidden with the padding: keys 0 to length - 1 are tokens"),
    (
        lambda n, L: causal_mask(n) & (np.arange(n) >= n - L[:, None])[:, None, None],
        "the padding is hidden in front: here it stands behind the tokens",
    ),
    (lambda n, L: _causal_real(n, 0 * L + L[0]), f"all sequences get the first length: {_LENGTHS}"),
    (lambda n, L: _causal_real(n, 0 * L + L.max()), f"all sequences get the largest length: {_LENGTHS}"),
    (lambda n, L: _causal_real(n, 0 * L + L.min()), f"all sequences get the smallest length: {_LENGTHS}"),
]


def causal_padding_mask(answer):
    """answer(n, lengths (batch,)) -> (batch, 1, n, n), True = may attend: no later key, no padding as a key."""
    return judge(
        answer,
        cases=[(5, [5, 3]), (4, [2, 4, 1]), (6, [4]), (3, [2, 3, 1])],
        right=_causal_real,
        mistakes=_CAUSAL_PADDING_MASK,
        hint="np.tri(n, dtype=bool) is (n, n), and the padding of the keys must be (batch, 1, 1, n) to meet it",
        praise="every query sees its past and itself, and no padding; the heads axis of 1 serves all heads.",
        explain=_first_wrong_pair,
        read=_booleans,
    )


def _booleans(result):
    """The result as numbers; Refused where it is no boolean mask."""
    values, dtype = numbers(result), np.asarray(result).dtype
    if dtype.kind in "iu":
        raise Refused(
            f"the mask holds integers ({dtype}), which attention refuses, as 1 could mean 'may attend' or 'hidden': "
            "make it boolean, with comparisons and np.tri(n, dtype=bool)."
        )
    if dtype.kind == "f" and (values < 0).any():
        raise Refused("this is an additive mask, for the scores: a boolean one is asked for, True = may attend.")
    if dtype.kind != "b":
        raise Refused(
            f"the mask holds numbers ({dtype}), which attention would add to the scores: make it boolean, "
            "with comparisons and np.tri(n, dtype=bool)."
        )
    return values


def _first_wrong_pair(case, result, target):
    if result.shape != target.shape:
        return difference(case, result, target)
    b, _, i, j = np.argwhere(result != target)[0]
    says, wanted = ("may", "should not") if result[b, 0, i, j] else ("may not", "should")
    return (
        f"sequence {b} has length {case[1][b]}, and there query {i} {says} attend to key {j}, but {wanted} "
        f"(for n, lengths = {show(case)})."
    )


_HIDDEN_NAN = "0 * inf is NaN: choose with np.where(hidden, -np.inf, 0.0) instead of multiplying"

_ADDITIVE_MASK = [
    (
        lambda H: np.where(H, 0, -np.inf),
        "the polarity is inverted: hidden is True where -inf must stand (before np.log, write ~hidden)",
    ),
    (
        lambda H: np.where(H, 0, -1e9),
        "the polarity is inverted and the number finite: -np.inf must stand where hidden is True",
    ),
    (lambda H: H * -np.inf, _HIDDEN_NAN),
    (lambda H: ~H * -np.inf, f"the polarity is inverted, and {_HIDDEN_NAN}"),
    (
        lambda H: np.where(H, np.inf, 0),
        "hidden positions get +inf, the largest score of all: the sign is wrong, -np.inf hides",
    ),
    (lambda H: np.where(H, np.nan, 0), "NaN makes every weight NaN: -np.inf hides"),
    (
        lambda H: H,
        "these are 1 where hidden and 0 elsewhere, which added to the scores hides nothing: use -np.inf and 0",
    ),
    (
        lambda H: ~H,
        "these are 1 where allowed and 0 elsewhere, which added to the scores hides nothing: use 0 and -np.inf",
    ),
    (
        lambda H: np.where(H, -np.inf, 1),
        "allowed positions get 1: what is added to them must be 0",
    ),
    (lambda H: 0 * H, "nothing is hidden: -np.inf belongs where hidden is True"),
    (lambda H: np.where(H, -np.inf, -np.inf), "everything is hidden: allowed positions get 0"),
]


def additive_mask(answer):
    """answer(hidden), boolean, True = HIDDEN -> numbers of that shape: 0 where allowed, -inf where hidden."""
    return judge(
        answer,
        cases=[
            ([False, True, False, True, True],),
            ([[False, False, True], [False, True, True]],),
            (~_real(4, np.array([4, 2, 1])),),
            ([True, True],),
            (~causal_mask(3),),
        ],
        right=lambda hidden: to_additive(~hidden),
        mistakes=_ADDITIVE_MASK,
        hint="hidden is a boolean array of any shape: ~hidden inverts it, np.where chooses",
        praise="added to the scores, 0 leaves a score alone and -inf takes all its weight.",
        explain=_wrong_addend,
        read=_addends,
    )


def _addends(result):
    """The result as numbers; Refused where it is no floating-point mask."""
    values, kind = numbers(result), np.asarray(result).dtype.kind
    if kind == "b":
        raise Refused("this is a boolean mask: numbers are asked for, 0.0 where allowed and -np.inf where hidden.")
    if kind in "iu":
        raise Refused("these are integers, which cannot hold -inf: use floating-point numbers, 0.0 and -np.inf.")
    return values


def _wrong_addend(case, result, target):
    if result.shape != target.shape:
        return difference(case, result, target)
    hidden = case[0]
    if (kept := result[~hidden]).any():
        return f"an allowed position gets {kept[kept != 0][0]:g}: it must be 0, which leaves the score alone."
    fill = next(x for x in result[hidden] if x != -np.inf)
    return f"a hidden position gets {fill:g}: a score can be so large that it still wins weight, -np.inf takes it all."


def _fill(S, allowed, fill=-np.inf):
    return np.where(allowed, S, fill)


def _divided(powers):
    return powers / powers.sum(axis=-1, keepdims=True)


def _guarded(powers):
    """Divided by the sum, where there is one."""
    total = powers.sum(axis=-1, keepdims=True)
    return powers / np.where(total == 0, 1, total)


def _below(S, top):
    """exp of the scores after a maximum was subtracted: top(S), with all axes kept."""
    return np.exp(S - top(S, keepdims=True))


def _row_max(S, keepdims):
    return S.max(axis=-1, keepdims=keepdims)


_NOTHING = "a query with nothing allowed gets {}: its weights should be zeros"
_OVERFLOW = "exp overflows for large scores, inf / inf is NaN: subtract the largest allowed score of each query first"
_HIDDEN_TOP = (
    "the largest score of a query may be a hidden one, beside which all others vanish: hide before you subtract"
)
_POLARITY = "the polarity is inverted, hidden keys get the weight: True = may attend"
_ONE_TOP = "one maximum was subtracted for all queries, so those with lower scores get 0 / 0: each needs its own"

_MASKED_SOFTMAX = [
    (lambda S, allowed: softmax(S), "the mask plays no part: put -inf where allowed is False, before softmax"),
    (
        lambda S, allowed: softmax(S) * allowed,
        "the mask comes after softmax, so the weights do not sum to 1: put -inf into the scores, before softmax",
    ),
    (lambda S, allowed: _divided(_below(_fill(S, allowed), _row_max)), _NOTHING.format("-inf - (-inf) = NaN")),
    *(
        (
            lambda S, allowed, fill=fill: softmax(_fill(S, allowed, fill)),
            _NOTHING.format("equal weights") + " (a finite fill hides only beside real scores: use -np.inf)",
        )
        for fill in (-1e9, -1e4)
    ),
    *(
        (
            lambda S, allowed, fill=fill: softmax(S + np.where(allowed, 0, fill)),
            _NOTHING.format("the weights of hidden scores") + " (a finite number was added: use -np.inf)",
        )
        for fill in (-1e9, -1e6, -1e5, -1e4)
    ),
    (
        lambda S, allowed: softmax(S * allowed),
        "the scores are multiplied by the mask: 0 is a score like any other, exp(0) = 1; use -np.inf",
    ),
    (lambda S, allowed: softmax(S + allowed), "the mask is added as 0 and 1, which hides nothing: use 0 and -np.inf"),
    (lambda S, allowed: softmax(_fill(S, ~allowed)), _POLARITY),
    (lambda S, allowed: _divided(_below(_fill(S, ~allowed), _row_max)), _POLARITY),
    (lambda S, allowed: softmax(_fill(S, ~allowed, -1e9)), _POLARITY),
    (
        lambda S, allowed: softmax(_fill(S, allowed), axis=-2),
        "softmax ran over the queries (down the columns): each row of weights must sum to 1, use axis=-1",
    ),
    (
        lambda S, allowed: softmax(_fill(S, allowed), axis=0),
        "softmax ran over axis 0: that is the batch, or in a 2-D matrix the queries; use axis=-1",
    ),
    (
        lambda S, allowed: softmax(_fill(S, allowed).ravel()).reshape(S.shape),
        "softmax ran over the whole array: the weights of each query must sum to 1, use axis=-1",
    ),
    (lambda S, allowed: _divided(_below(S, _row_max) * allowed), _HIDDEN_TOP),
    (lambda S, allowed: _guarded(_below(S, _row_max) * allowed), _HIDDEN_TOP),
    (lambda S, allowed: _divided(np.exp(_fill(S, allowed))), _OVERFLOW),
    (lambda S, allowed: _guarded(np.exp(_fill(S, allowed))), _OVERFLOW),
    (lambda S, allowed: _divided(np.exp(S) * allowed), _OVERFLOW),
    (lambda S, allowed: _guarded(np.exp(S) * allowed), _OVERFLOW),
    (lambda S, allowed: np.nan_to_num(_divided(np.exp(_fill(S, allowed)))), _OVERFLOW),
    (lambda S, allowed: _divided(_below(_fill(S, allowed), np.max)), _ONE_TOP),
    (lambda S, allowed: _guarded(_below(_fill(S, allowed), np.max)), _ONE_TOP),
    (lambda S, allowed: _below(_fill(S, allowed), _row_max), "the weights do not sum to 1: divide by their sum"),
    (
        lambda S, allowed: np.nan_to_num(_below(_fill(S, allowed), _row_max)),
        "the weights do not sum to 1: divide by their sum",
    ),
    (_fill, "these are the masked scores: softmax is missing"),
    (lambda S, allowed: softmax(_fill(-S, allowed)), "the sign is wrong: the smallest score gets the largest weight"),
]


def masked_softmax(answer):
    """answer(scores (..., n_q, n_kv), allowed, True = may attend) -> weights; zeros where nothing is allowed."""
    rows = np.array([[True, False, True, True, False], [False] * 5, [True, True, False, True, True]])
    return judge(
        answer,
        cases=[
            (*draw((2, 3, 4, 5)), _real(5, np.array([5, 3]))),
            (*draw((3, 5)), rows),
            (*draw((2, 3, 4, 4)), causal_mask(4)),
            ([[1000.0, 1.0, 2.0], [0.5, 1000.0, -1.0]], [[False, True, True], [True, False, True]]),
            ([[-20000.0, -20001.0, 5.0]], [[True, True, False]]),
            ([[1000.0, 999.0, -3.0], [-1000.0, -1002.0, 5.0]], [[True, True, True], [True, True, False]]),
        ],
        right=lambda S, allowed: softmax(_fill(S, allowed)),
        mistakes=_MASKED_SOFTMAX,
        hint="np.where(allowed, scores, -np.inf) has the shape of scores; sums and maxima need axis=-1, keepdims=True",
        praise="hidden keys get 0, the allowed ones share 1, and a query with nothing allowed gets zeros.",
        explain=_wrong_weights,
    )


def _wrong_weights(case, result, target):
    if result.shape != target.shape:
        return difference(case, result, target)
    allowed = np.broadcast_to(case[1], target.shape)
    some = allowed.any(axis=-1)
    if (given := result[~some][result[~some] != 0]).size:
        return _NOTHING.format(f"{given[0]:.3g}") + "."
    if np.isnan(result).any() and np.abs(case[0]).max() >= 1000:
        return f"some weights are NaN (for {show(case)}): subtract the largest allowed score before exp."
    if (leak := result[~allowed]).any():
        return f"a hidden key gets the weight {leak[leak != 0][0]:.3g}: -np.inf in its place before softmax makes it 0."
    if not np.allclose(sums := result.sum(axis=-1)[some], 1, atol=1e-4):
        return f"the weights of a query sum to {apart(sums[np.argmax(np.abs(sums - 1))], 1)[0]} (for {show(case)})."
    return difference(case, result, target)
