"""An exercise of notebook 7: how much of a map is induction."""

import numpy as np

from attn_helpers.attention import softmax
from attn_helpers.exercises.mistakes import draw
from attn_helpers.heads import head_statistics
from attn_helpers.judging import judge
from attn_helpers.masks import causal_mask, window_mask


def _equal(t, tokens, stop):
    """The j < stop whose token is that of t."""
    return [j for j in range(stop) if tokens[j] == tokens[t]]


def _after(t, tokens):
    return [j + 1 for j in _equal(t, tokens, t - 1)]


def _weight_on(keys, pool=np.sum, over=np.mean):
    """The weight on keys(t, tokens), summed up for each query t that has such keys, and the mean over these queries."""

    def answer(A, tokens):
        found = [A[t, keys(t, tokens)] for t in range(len(tokens))]
        return over([pool(weights) for weights in found if len(weights)])

    return answer


def _if_repeated(key):
    """One key, key(t), for the queries that have a key of induction."""
    return lambda t, tokens: [key(t)] if _after(t, tokens) else []


def _hits(A, tokens):
    """The share of the queries whose largest weight is on such a key."""
    queries = [t for t in range(len(tokens)) if _after(t, tokens)]
    return np.mean([A[t].argmax() in _after(t, tokens) for t in queries])


def _total(A, tokens):
    return _weight_on(_after, over=np.sum)(A, tokens)


_AT_J = "the weight on j is counted, the earlier equal token: induction looks at the token after it, j + 1"
_BEFORE = "the weight on j - 1 is counted, the token before the earlier equal one: induction looks at j + 1"
_ITSELF = "j = t is counted as well: only earlier tokens, with j + 1 < t, count"

_INDUCTION = [
    (_weight_on(lambda t, tokens: _equal(t, tokens, t - 1)), _AT_J),
    (_weight_on(lambda t, tokens: _equal(t, tokens, t)), _AT_J),
    (_weight_on(lambda t, tokens: [j - 1 for j in _equal(t, tokens, t - 1)]), f"{_BEFORE} (and -1 is the last key)"),
    (_weight_on(lambda t, tokens: [j - 1 for j in _equal(t, tokens, t) if j]), _BEFORE),
    (_weight_on(lambda t, tokens: [j - 1 for j in _equal(t, tokens, t - 1) if j]), _BEFORE),
    (
        _weight_on(lambda t, tokens: [j + 2 for j in _equal(t, tokens, t - 1)]),
        "the weight on j + 2 is counted: it is j + 1",
    ),
    (_weight_on(_if_repeated(lambda t: t - 1)), "the weight on t - 1 is counted, the previous token: it is j + 1"),
    (
        _weight_on(lambda t, tokens: [t - 1] if t else []),
        "this is the weight on the previous token, t - 1: it is j + 1",
    ),
    (_weight_on(_if_repeated(lambda t: t)), "the weight on t itself is counted: it is j + 1"),
    (
        lambda A, tokens: _weight_on(_after)(A.T, tokens),
        "the map is read transposed: weights[t, i] is the weight of query t on key i",
    ),
    (
        _weight_on(lambda t, tokens: _after(t, tokens)[-1:]),
        "only the nearest earlier j counts: add the weight for all j",
    ),
    (_weight_on(lambda t, tokens: _after(t, tokens)[:1]), "only the first j counts: add the weight for all earlier j"),
    (
        lambda A, tokens: _total(A, tokens) / len(tokens),
        "the sum is divided by all n queries: divide by the number of queries that have such a j",
    ),
    (
        lambda A, tokens: _total(A, tokens) / (len(tokens) - 1),
        "the sum is divided by n - 1, all queries but one: divide by the number of queries that have such a j",
    ),
    (
        _weight_on(_after, over=lambda found: np.mean([weight for weight in found if weight > 0])),
        "queries with a weight of 0 there are left out: they have such a j, so they count",
    ),
    (
        lambda A, tokens: _total(A, tokens) / len(set(tokens)),
        "the sum is divided by the number of different tokens: divide by that of the queries that have such a j",
    ),
    (_total, "the queries are summed up: take the mean over those that have such a j"),
    (_weight_on(_after, over=np.max), "this is the largest weight of a query: take the mean over the queries"),
    (_weight_on(_after, over=np.array), "these are the weights of the single queries: return their mean"),
    (_weight_on(_after, pool=np.mean), "the mean over the j of a query is taken: add their weights"),
    (_weight_on(_after, pool=np.max), "only the largest weight of a query counts: add the weights for all j"),
    (
        _weight_on(_after, pool=list, over=lambda found: np.mean(np.concatenate(found))),
        "the mean runs over all pairs t, j: add the weights of a query first, then take the mean over the queries",
    ),
    (
        _weight_on(lambda t, tokens: [j + 1 for j in _equal(t, tokens, t)]),
        "j = t - 1 counts as well, where j + 1 is t itself: only j with j + 1 < t count",
    ),
    (
        lambda A, tokens: _total(A, tokens) / sum(t > tokens.index(tokens[t]) for t in range(len(tokens))),
        "queries whose only earlier equal token is t - 1 are divided by as well: they have no j with j + 1 < t",
    ),
    (
        _weight_on(lambda t, tokens: [j + 1 for j in _equal(t, tokens, min(t + 1, len(tokens) - 1))]),
        _ITSELF,
    ),
    (
        _weight_on(lambda t, tokens: [j + 1 for j in _equal(t, tokens, len(tokens) - 1)]),
        "later equal tokens, and t itself, are counted as well: only those with j + 1 < t count",
    ),
    (
        _weight_on(lambda t, tokens: [j + 1 for j in _equal(t, tokens, len(tokens) - 1) if j != t]),
        "later equal tokens are counted as well: only those with j + 1 < t count",
    ),
    (
        _weight_on(lambda t, tokens: [j + 1 for j in _equal(t - 1, tokens, t - 1)] if t else []),
        "tokens like t - 1 are looked for: it is the token of the query itself, t, that occurred before",
    ),
    (_hits, "this is how often the largest weight is on such a key: take the weights themselves"),
]


def _map(n, mask=True):
    return softmax(np.where(mask, 2 * draw((n, n))[0], -np.inf))


def induction_weight(answer):
    """answer(weights (n, n), tokens, n strings) -> the mean weight of a query on what followed its token before.

    Of each query t whose token stands at some j with j + 1 < t: the weight on all such j + 1, added up.
    """
    return judge(
        answer,
        cases=[
            (_map(9), tuple("abaabccba")),
            (_map(8, causal_mask(8)), ("the", "cat", "saw", "the", "dog", "the", "cat", "saw")),
            (_map(6), tuple("xyzxyz")),
            (_map(4), tuple("oooo")),
            (_map(7, window_mask(7, window=2)), tuple("abacaba")),  # query 5 has no weight on its key
        ],
        right=lambda A, tokens: head_statistics(A, tokens)["induction"],
        mistakes=_INDUCTION,
        hint="weights[t, i] is the weight of query t on key i, and j + 1 must be below t",
        praise="an induction head has much weight there: it looks at what came next when its token stood here before.",
    )
