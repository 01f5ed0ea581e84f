"""Heads that the reader builds by hand: what do they really look at?"""

import numpy as np

from attn_helpers.attention import scores, softmax
from attn_helpers.judging import Feedback, Refused, call, no_answer, numbers

_SEQUENCES = ["abac", "bcdca", "daabde", "ebacbeb"]
_ENOUGH, _EVEN, _MOSTLY = 0.9, 0.05, 0.8

# name: (i, j, token) -> whether position i looks at position j; a row without any is free
_LOOKS = {
    "the previous token": lambda i, j, t: j == i - 1,
    "the next token": lambda i, j, t: j == i + 1,
    "the position itself": lambda i, j, t: j == i,
    "the first token": lambda i, j, t: (j == 0) & (i >= 0),
    "the last token": lambda i, j, t: (j == len(t) - 1) & (i >= 0),
    "the token two back": lambda i, j, t: j == i - 2,
    "the token two ahead": lambda i, j, t: j == i + 2,
    "the mirrored position": lambda i, j, t: i + j == len(t) - 1,
    "the equal tokens": lambda i, j, t: t[i] == t[j],
    "the equal tokens elsewhere": lambda i, j, t: (t[i] == t[j]) & (i != j),
    "all other tokens": lambda i, j, t: t[i] != t[j],
    "all tokens like the first": lambda i, j, t: (t[j] == t[0]) & (i >= 0),
    "all tokens like the previous one": lambda i, j, t: (t[j] == t[i - 1]) & (i > 0),
    "all tokens like the next one": lambda i, j, t: (t[j] == t[(i + 1) % len(t)]) & (i < len(t) - 1),
    "the tokens after the equal ones": lambda i, j, t: t[j - 1] == t[i],
    "the tokens before the equal ones": lambda i, j, t: t[(j + 1) % len(t)] == t[i],
    "all earlier positions": lambda i, j, t: j < i,
    "all positions up to its own": lambda i, j, t: j <= i,
    "all later positions": lambda i, j, t: j > i,
    "everything but the position itself": lambda i, j, t: j != i,
    "everything but the previous token": lambda i, j, t: (j != i - 1) & (i > 0),
    "everything but the first token": lambda i, j, t: (j != 0) & (i >= 0),
    "all positions alike": lambda i, j, t: i + j >= 0,
}
_NARROW = [name for name in _LOOKS if name.startswith("the ")]  # the others are many positions at once


@np.errstate(all="ignore")
def judge_head(answer, wanted, cures, recipe, praise):
    """Compute the weights of the reader's Q and K for several sequences; say what the head looks at.

    wanted  a name of _LOOKS
    cures   name of a wrong look -> what to do; recipe stands for all others
    """
    if (feedback := no_answer(answer)) is not None:
        return feedback
    try:
        heads = [_Head(answer, text) for text in _SEQUENCES]
    except Refused as error:
        return Feedback(False, str(error))
    least = min(head.share(wanted).min() for head in heads)
    if least >= _ENOUGH and max(head.unevenness(wanted).max() for head in heads) <= _EVEN:
        free = f"; position 0, which is free, {_row_zero(heads)}" if not heads[0].looks(wanted)[0].any() else ""
        return Feedback(True, f"{praise}, with at least {_down(least):.2f} of its weight{free}.")
    return Feedback(False, _describe(heads, wanted, cures, recipe))


class _Head:
    """The weights of the reader's Q and K for one sequence of letters."""

    def __init__(self, answer, text):
        self.text, self.tokens = text, np.array([ord(letter) - ord("a") for letter in text])
        E, P = np.eye(5)[self.tokens], np.eye(len(text))
        hint = "E and P come with 4 to 7 rows: take n from len(P)"
        Q, K = _queries_and_keys(call(answer, (E, P), hint), len(text))
        try:
            S = scores(Q, K)
            self.weights = softmax(S)  # (n, n)
        except ValueError:
            raise Refused("the scores Q K^T overflow: multiply Q by a smaller number, 50 is enough.") from None
        top = S.max(axis=1, keepdims=True)
        self.best = top - S <= 1e-6 * np.maximum(1, np.abs(S).max())  # (n, n), True at the largest scores of a row

    def looks(self, name):
        """(n, n), True where a head of that name looks."""
        i = np.arange(len(self.text))
        return _LOOKS[name](i[:, None], i[None, :], self.tokens)

    def share(self, name):
        """What each row that is not free gives to the positions of that name."""
        looks = self.looks(name)
        return (self.weights * looks).sum(axis=1)[looks.any(axis=1)]

    def overlap(self, name):
        """What the weights have in common with a head that looks there in equal shares, 1 if all; the mean."""
        looks = self.looks(name)
        shares = looks / np.maximum(looks.sum(axis=1, keepdims=True), 1)
        return np.minimum(self.weights, shares).sum(axis=1)[looks.any(axis=1)].mean()

    def unevenness(self, name):
        """For each row that is not free the largest distance from equal shares."""
        looks = self.looks(name)
        count = np.maximum(looks.sum(axis=1, keepdims=True), 1)
        mean = (self.weights * looks).sum(axis=1, keepdims=True) / count
        return (np.abs(self.weights - mean) * looks).max(axis=1)[looks.any(axis=1)]

    def prefers(self, name):
        """True if in each row that is not free the largest scores stand exactly there."""
        looks = self.looks(name)
        return not (looks != self.best)[looks.any(axis=1)].any()


def _queries_and_keys(result, n):
    several = isinstance(result, (tuple, list)) or (isinstance(result, np.ndarray) and result.ndim == 3)
    if not several or len(result) != 2:
        count = f" of {len(result)}" if several else ""
        raise Refused(
            f"your function returns {type(result).__name__}{count}, but two arrays are expected: end with "
            "return Q, K (scores and softmax are computed from them here)."
        )
    arrays = [_rows(name, array, n) for name, array in zip("QK", result)]
    widths = [array.shape[1] for array in arrays]
    if widths[0] != widths[1]:
        raise Refused(
            f"Q has {widths[0]} columns and K has {widths[1]}: a row of Q is compared with a row of K, "
            "so both need the same width."
        )
    return arrays


def _rows(name, array, n):
    try:
        array = numbers(array)
    except Refused:
        raise Refused(f"{name} is {type(array).__name__}, but should be an array of numbers.") from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise Refused(f"{name} has shape {array.shape}, but should be a matrix with a row for each position.")
    if len(array) != n:
        raise Refused(
            f"{name} has {len(array)} rows, but the sequence has {n} tokens: it needs a row for each position, "
            "so take n from len(P)."
        )
    if not np.isfinite(array).all():
        raise Refused(f"{name} holds NaN or infinite numbers: a large finite one, such as 50, is enough.")
    return array


def _describe(heads, wanted, cures, recipe):
    """What a wrong head looks at, and the cure."""
    preferred = next((name for name in _LOOKS if all(head.prefers(name) for head in heads)), None)
    weakest = min(heads, key=lambda head: head.share(wanted).min())
    least = weakest.share(wanted).min()
    if preferred == wanted:
        only = f"but in {weakest.text!r} only {_down(least):.2f} of it"
        return f"{_most(wanted)} the most weight, {only}: multiply Q by a larger number."
    if least >= _ENOUGH and (preferred is None or _mean_share(heads, preferred) < _ENOUGH):
        return f"{_most(wanted)} {_mean_share(heads, wanted):.2f} of the weight, but not in equal shares: {recipe}."
    if preferred is None:
        overlaps = {name: np.mean([head.overlap(name) for head in heads]) for name in _NARROW if name != wanted}
        preferred = max(overlaps, key=overlaps.get) if max(overlaps.values()) >= _MOSTLY else None
    if preferred is None:
        return f"{_worst_row(weakest, wanted)}: {recipe}."
    weight = "" if preferred == "all positions alike" else f" (mean weight {_mean_share(heads, preferred):.2f})"
    return f"your head looks at {preferred}{weight}: {cures.get(preferred, recipe)}."


def _down(share):
    """Two decimals, rounded down: 0.897 is not shown as the 0.90 that would do."""
    return np.floor(100 * share + 1e-9) / 100


def _mean_share(heads, name):
    return np.concatenate([head.share(name) for head in heads]).mean()


def _most(name):
    return f"{name} get" if name.endswith("tokens") else f"{name} gets"


def _worst_row(head, wanted):
    looks = head.looks(wanted)
    rows = np.flatnonzero(looks.any(axis=1))
    i = rows[np.argmin(head.share(wanted))]
    there, most = " and ".join(map(str, np.flatnonzero(looks[i]))), np.argmax(head.weights[i])
    instead = "" if looks[i, most] else f", and {_down(head.weights[i, most]):.2f} to position {most}"
    return (
        f"in {head.text!r} position {i} should look at {there}, "
        f"but gives only {_down(head.share(wanted).min()):.2f} there{instead}"
    )


def _row_zero(heads):
    """What position 0 does, in words."""
    rows = [head.weights[0] for head in heads]
    if all(row[-1] >= _ENOUGH for row in rows):
        return "looks at the last one (the shift wraps round)"
    if all(row[0] >= _ENOUGH for row in rows):
        return "looks at itself"
    if all(np.ptp(row) <= _EVEN for row in rows):
        return "spreads its weight evenly"
    return f"gives its largest weight, {rows[-1].max():.2f} in {heads[-1].text!r}, to position {rows[-1].argmax()}"
