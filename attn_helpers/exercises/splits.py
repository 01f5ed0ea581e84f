"""An exercise of notebook 7: the reader's test of splits, tried on right and on scrambled ones."""

from typing import NamedTuple

import numpy as np

from attn_helpers import heads
from attn_helpers.exercises.mistakes import draw
from attn_helpers.exercises.multi_head import cut_in_order, straight, transposed_first
from attn_helpers.judging import judge, yes_or_no


def _comparing(part):
    """A tester that compares a part of a split with that part of the right one."""
    return lambda split, x, h: not np.array_equal(part(split(x, h)), part(heads.split_heads(x, h)))


def _by_token_numbers(split, x, h):
    """A tester that splits the numbers of the tokens in place of x."""
    numbers = np.broadcast_to(np.arange(x.shape[1])[:, None], x.shape)  # (b, n, d)
    return not np.array_equal(split(numbers, h), heads.split_heads(numbers, h))


_REFERENCE = "your reference is scrambled itself, a reshape without swapping axes: swap axes 1 and 2 before you compare"

_SCRAMBLES = [
    (
        lambda split, x, h: False,
        "your test finds nothing scrambled, not even a reshape straight to (b, h, n, d_h): compare numbers, in place",
    ),
    (lambda split, x, h: True, "your test calls every split scrambled, even the right one"),
    (
        lambda *case: not _comparing(lambda y: y)(*case),
        "the verdict is inverted: True stands for a split that scrambles",
    ),
    (
        _comparing(np.shape),
        "your test compares only shapes, and a scrambled split has the right shape: compare the numbers of each token",
    ),
    (
        _comparing(lambda y: np.sort(y, axis=None)),
        "only the set of all numbers (or their sum) is compared: scrambled, they are the same numbers elsewhere",
    ),
    (
        _comparing(lambda y: y[:, 0, 0]),
        "only token 0 of head 0 is looked at, and a straight reshape gets that right: look at all tokens and heads",
    ),
    (_comparing(lambda y: y[:, 0]), "only head 0 is looked at: compare all heads"),
    (_comparing(lambda y: y[:, :, 0]), "only token 0 is looked at: compare all tokens"),
    (_comparing(lambda y: y[0]), "only sequence 0 is looked at: compare the whole batch"),
    (
        _by_token_numbers,
        "only the number of its token marks where an entry comes from: so two sequences, or two entries of one token, "
        "look alike; give all entries different numbers",
    ),
    (lambda split, x, h: not np.array_equal(split(x, h), straight(x, h)), _REFERENCE),
    (lambda split, x, h: not np.array_equal(split(x, h).reshape(x.shape), x), _REFERENCE),
]


class _Case(NamedTuple):
    """A split, the shape of x, h, whether x is scrambled, what to call the split, what to do if the test is wrong."""

    split: object
    shape: tuple
    h: int
    scrambles: bool
    name: str
    cure: str


def _by_columns(x, h):
    return np.stack(np.split(x, h, axis=-1), axis=1)  # (b, h, n, d_h)


def _by_head(x, h):
    d_h = x.shape[-1] // h
    return np.array([[one[:, i * d_h : (i + 1) * d_h] for i in range(h)] for one in x])  # (b, h, n, d_h)


def _exchanged(head):
    """The right split, but this head has the last two tokens exchanged."""

    def split(x, h):
        y = heads.split_heads(x, h).copy()
        y[:, head, -2:] = y[:, head, :-3:-1].copy()
        return y

    return split


def _two_numbers_exchanged(x, h):
    """The right split, but two tokens in the middle of the first sequence exchange one number of a middle head."""
    y = heads.split_heads(x, h).copy()
    _, head, token, column = (size // 2 for size in y.shape)
    y[0, head, [token - 1, token], column] = y[0, head, [token, token - 1], column]
    return y


def _last_sequence_straight(x, h):
    return np.concatenate([heads.split_heads(x[:-1], h), straight(x[-1:], h)])


_MERGE_BACK = "swap axes 1 and 2 of the result, reshape it to the shape of x and compare it with x, number by number"
_RIGHT = "head i holds the i-th d / h columns of every token, so nothing is scrambled"

_CASES = [
    _Case(
        cut_in_order(0, 2, 1, 3), (2, 6, 12), 3, False, "reshape to (b, n, h, d_h), then axes 1 and 2 swapped", _RIGHT
    ),
    _Case(straight, (2, 6, 12), 3, True, "a reshape straight to (b, h, n, d_h)", _MERGE_BACK),
    _Case(_by_columns, (2, 4, 15), 3, False, "np.split along the columns", _RIGHT),
    _Case(_by_head, (3, 5, 8), 2, False, "a loop that slices each head out of each sequence", _RIGHT),
    _Case(straight, (1, 4, 6), 3, True, "a straight reshape of a batch of one", _MERGE_BACK),
    _Case(
        straight,
        (2, 4, 6),
        1,
        False,
        "a straight reshape into one head",
        "with one head it is right: judge the result",
    ),
    _Case(cut_in_order(0, 1, 2, 3), (2, 6, 12), 3, True, "a split without a swap, (b, n, h, d_h)", _MERGE_BACK),
    _Case(cut_in_order(0, 1, 2, 3), (2, 3, 12), 3, True, "a split without a swap where n = h", _MERGE_BACK),
    _Case(cut_in_order(2, 0, 1, 3), (3, 4, 6), 3, True, "a split to (h, b, n, d_h) where h = b", _MERGE_BACK),
    _Case(cut_in_order(0, 2, 3, 1), (2, 4, 12), 3, True, "a split to (b, h, d_h, n) where n = d_h", _MERGE_BACK),
    _Case(transposed_first, (2, 4, 12), 3, True, "a transpose and then a straight reshape", _MERGE_BACK),
    _Case(_exchanged(0), (2, 5, 8), 4, True, "a split whose first head exchanges two tokens", _MERGE_BACK),
    _Case(_exchanged(-1), (2, 5, 8), 4, True, "a split whose last head exchanges two tokens", _MERGE_BACK),
    _Case(_last_sequence_straight, (3, 4, 6), 2, True, "a split that scrambles the last sequence alone", _MERGE_BACK),
    _Case(_two_numbers_exchanged, (2, 6, 12), 4, True, "a split that exchanges two numbers only", _MERGE_BACK),
    _Case(
        lambda x, h: heads.split_heads(np.concatenate([x[:1], x[:0:-1]]), h),
        (3, 4, 6),
        3,
        True,
        "a split that exchanges sequences of the batch",
        _MERGE_BACK,
    ),
    _Case(
        lambda x, h: np.repeat(heads.split_heads(x, h)[:, :1], h, axis=1),
        (2, 5, 6),
        3,
        True,
        "a split whose heads all hold the columns of the first",
        f"numbers are lost there, {_MERGE_BACK}",
    ),
    _Case(
        lambda x, h: np.moveaxis(x.reshape(*x.shape[:2], -1, h), -1, 1),  # (b, h, n, d_h)
        (2, 5, 12),
        3,
        True,
        "a split by reshape to (b, n, d_h, h), which deals the columns out to the heads in turn",
        _MERGE_BACK,
    ),
    _Case(
        lambda x, h: heads.split_heads(x, h)[..., ::-1],
        (2, 4, 6),
        2,
        True,
        "a split with the columns of each head turned round",
        _MERGE_BACK,
    ),
]


def scrambles(answer):
    """answer(split, x (b, n, d), h) -> True if a number of x is lost in split(x, h) or stands elsewhere.

    False for a right split, (b, h, n, d / h), however it is written.
    """
    return judge(
        answer,
        cases=[(case.split, draw(case.shape)[0], case.h) for case in _CASES],
        right=lambda split, x, h: _case_of(split, x).scrambles,
        mistakes=_SCRAMBLES,
        hint="split is a function: call it, split(x, h); a scrambled result may have any order of the axes",
        praise=f"your test is right about {len(_CASES)} splits, {sum(c.scrambles for c in _CASES)} of them scrambling.",
        explain=_wrong_verdict,
        read=yes_or_no,
    )


def _case_of(split, x):
    return next(case for case in _CASES if (case.split, case.shape) == (split, x.shape))


def _wrong_verdict(case, result, target):
    wrong = _case_of(*case[:2])
    return f"your test calls {wrong.name} {'right' if wrong.scrambles else 'scrambled'}: {wrong.cure}."
