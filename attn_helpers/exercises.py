"""Feedback on the reader's answers: check.<exercise>(answer), and predict() before a run."""

import html

import ipywidgets as widgets
import numpy as np

from attn_helpers.attention import entropy, softmax
from attn_helpers.judging import judge
from attn_helpers.live import RED, quiet
from attn_helpers.puzzles import judge_head


class check:
    """One method for each exercise; each takes the reader's function and returns Feedback."""

    @staticmethod
    def softmax(answer):
        """answer(scores (n,)) -> weights (n,), also for scores of 1000."""
        return judge(
            answer,
            cases=[([1.0, 0.0, 2.0],), ([1000.0, 1001.0, 999.0],), ([1000.0, 0.0, -1000.0],), ([-1001.0, -1000.0],)],
            right=softmax,
            mistakes=[
                (
                    lambda s: _share(np.exp(s)),
                    "exp(1000) overflows and inf / inf is NaN: subtract the largest score before exp",
                ),
                (
                    lambda s: np.exp(s - s.max()) / np.exp(s).sum(),
                    "above the line the largest score is subtracted, below it exp(1000) still overflows",
                ),
                (
                    lambda s: _share(np.exp(s - s.mean())),
                    "after subtracting the mean a score can still be 1000: subtract the maximum",
                ),
                (
                    lambda s: _share(np.exp(s - s.min())),
                    "subtracting the minimum makes scores larger, not smaller: subtract the maximum",
                ),
                (lambda s: _share(np.exp(s - 1000)), "a fixed constant cannot fit all scores: subtract the largest"),
                (
                    lambda s: np.exp(s - np.log(np.exp(s).sum())),
                    "exp(1000) overflows inside the logarithm: subtract the largest score before exp",
                ),
                (lambda s: np.exp(s - s.max()), "the weights do not sum to 1: divide by the sum"),
                (
                    lambda s: _share(np.exp(np.clip(s, -700, 700))),
                    "clipping gives 1000 and 1001 the same weight; subtracting the maximum keeps their difference",
                ),
                (lambda s: s / s.sum(), "without exp, negative scores do not give proper weights"),
                (
                    lambda s: _share(np.exp(s.min() - s)),
                    "the sign is wrong: the smallest score gets the largest weight",
                ),
                (lambda s: _share(2 ** (s - s.max())), "the base is 2, but softmax uses e: np.exp"),
                (
                    lambda s: softmax(s, temperature=0),
                    "all weight is on the largest score: that is softmax at temperature 0",
                ),
            ],
            praise="the weights sum to 1 and scores of 1000 do no harm.",
        )

    @staticmethod
    def attend(answer):
        """answer(q (d,), X (n, d), temperature) -> output (d,)."""

        def weights(q, X, T):
            return softmax(X @ q, temperature=T)

        rng = np.random.default_rng(0)
        q, X = np.array([0.5, -1.0, 0.75]), rng.normal(size=(4, 3))
        return judge(
            answer,
            cases=[(q, X, 0.7), (q, X, 1.9), (9000 * q, X, 2.0)],
            right=lambda q, X, T: weights(q, X, T) @ X,
            hint="scores are X @ q, shape (n,), and the weighted sum is weights @ X; does your softmax return?",
            mistakes=[
                (weights, "these are the weights (n,): the output is their weighted sum of the rows of X, (d,)"),
                (lambda q, X, T: X @ q, "these are the scores (n,): softmax and the weighted sum are missing"),
                (lambda q, X, T: X @ q / T, "these are the scores (n,): softmax and the weighted sum are missing"),
                (lambda q, X, T: weights(q, X, T)[:, None] * X, "the rows are weighted but not summed"),
                (
                    lambda q, X, T: (weights(q, X, T)[:, None] * X).sum(axis=1),
                    "the sum ran over the features (axis 1), not over the positions (axis 0)",
                ),
                (
                    lambda q, X, T: np.exp(X @ q / T - (X @ q / T).max()) @ X,
                    "the weights do not sum to 1: divide by the sum",
                ),
                (lambda q, X, T: weights(q, X, 1) @ X, "the temperature plays no part: divide the scores by it"),
                (lambda q, X, T: softmax(X @ q * T) @ X, "the scores are multiplied by the temperature: divide by it"),
                (
                    lambda q, X, T: weights(q, X, 1) / T @ X,
                    "the weights are divided by the temperature: divide the scores, before softmax",
                ),
                (
                    lambda q, X, T: softmax(-X @ q / T) @ X,
                    "the sign is wrong: the smallest score gets the largest weight",
                ),
                (lambda q, X, T: X @ q / T @ X, "the scores are used as weights: softmax is missing"),
                (lambda q, X, T: X.mean(axis=0), "this is the mean of the rows: the query plays no part"),
                (
                    lambda q, X, T: X[np.argmax(X @ q)],
                    "this is the row with the largest score: a look-up, softmax at temperature 0",
                ),
                (
                    lambda q, X, T: _share(np.exp(X @ q / T)) @ X,
                    "exp overflows for large scores: subtract the largest score first",
                ),
                (
                    lambda q, X, T: softmax(X @ q / T / np.sqrt(len(q))) @ X,
                    "the scores are divided by sqrt(d): right in notebook 6, but not in the formula above",
                ),
                (
                    lambda q, X, T: softmax(X @ q / np.linalg.norm(X, axis=1) / np.linalg.norm(q) / T) @ X,
                    "the scores are cosines: the formula above does not divide by the norms",
                ),
                (
                    lambda q, X, T: (softmax(X * q / T, axis=1) * X).sum(axis=0),
                    "softmax ran over the features of each row, not over the positions",
                ),
            ],
            praise="scores, softmax, weighted sum: that is attention for one query.",
        )

    @staticmethod
    def effective_positions(answer):
        """answer(weights (n,)) -> 2 to the power of their entropy in bits."""
        return judge(
            answer,
            cases=[([0.5, 0.25, 0.125, 0.125],), ([0.7, 0.2, 0.1],), ([0.5, 0.0, 0.5],), ([0.0, 1.0],)],
            right=lambda w: 2 ** entropy(w),
            mistakes=[
                (
                    lambda w: 2 ** -(w * np.log2(w)).sum(),
                    "a weight of 0 gives 0 * log2(0) = NaN: leave the zeros out of the sum",
                ),
                (entropy, "this is the entropy H: the effective number of positions is 2 ** H"),
                (
                    lambda w: entropy(w) * np.log(2),
                    "this is the entropy in nats: use np.log2 for H, and then 2 ** H",
                ),
                (
                    lambda w: 2 ** (entropy(w) * np.log(2)),
                    "the entropy is in nats (np.log) and the power has base 2: use np.log2, or exp with np.log",
                ),
                (
                    lambda w: np.exp(entropy(w)),
                    "the entropy is in bits and the power has base e: use 2 ** H, or np.log with np.exp",
                ),
                (lambda w: 2 ** -entropy(w), "the minus sign of the entropy is missing"),
                (len, "this counts all positions, whatever their weight"),
                (np.count_nonzero, "this counts the positions with any weight at all, however small"),
                (
                    lambda w: 1 / (w**2).sum(),
                    "this is 1 / sum(w^2), another measure of spread; the exercise asks for 2 ** entropy",
                ),
                (
                    lambda w: 1 / w.max(),
                    "this is 1 / the largest weight, another measure of spread; the exercise asks for 2 ** entropy",
                ),
            ],
            hint="the logarithm of 0 does not exist: leave the zeros out of the sum",
            praise="2 ** H counts equal weights as whole positions and small ones in part.",
        )

    @staticmethod
    def kernel_regression(answer):
        """answer(queries (m,), u (n,), v (n,), bandwidth) -> fitted values (m,)."""

        def fit(queries, u, v, temperature, axis=1, power=2, half=2):
            scores = -(np.abs(queries[:, None] - u) ** power) / half
            return softmax(scores, axis=axis, temperature=temperature) @ v

        u, v = np.array([0.0, 0.5, 2.0, 3.5]), np.array([1.0, -1.0, 2.0, 0.5])
        return judge(
            answer,
            cases=[(np.array([0.2, 1.0, 3.0]), u, v, 0.7), (np.array([2.5, 0.1]), u, v, 1.6)],
            right=lambda q, u, v, b: fit(q, u, v, b**2),
            mistakes=[
                (lambda q, u, v, b: fit(q, u, v, b), "the bandwidth is not squared: the temperature is bandwidth ** 2"),
                (
                    lambda q, u, v, b: fit(q, u, v, b**2, half=1),
                    "the factor 1/2 is missing: the score is -(query - u) ** 2 / 2",
                ),
                (lambda q, u, v, b: fit(q, u, v, b**2, power=1), "the distance is not squared"),
                (
                    lambda q, u, v, b: fit(q, u, v, b**2, half=-2),
                    "the minus sign is missing: far points get the weight",
                ),
                (
                    lambda q, u, v, b: fit(q, u, v, b**2, axis=0),
                    "softmax ran over the queries: the weights of one query over all u must sum to 1",
                ),
                (
                    lambda q, u, v, b: np.exp(-((q[:, None] - u) ** 2) / (2 * b**2)) @ v,
                    "the kernel is not divided by its sum, so the weights do not sum to 1",
                ),
                (
                    lambda q, u, v, b: _share(np.exp(-((q[:, None] - u) ** 2) / 2 / b**2)) @ v,
                    "softmax ran over the whole (m, n) matrix: each query needs a sum of its own",
                ),
                (
                    lambda q, u, v, b: fit(q, u, v, 1 / b**2),
                    "the scores are multiplied by bandwidth ** 2: divide by it",
                ),
                (lambda q, u, v, b: fit(q, u, v, 1), "the bandwidth plays no part: the temperature is bandwidth ** 2"),
                (
                    lambda q, u, v, b: softmax(-((q[:, None] - u) ** 2) / 2, temperature=b**2),
                    "these are the weights (m, n): the fit is their weighted sum of v",
                ),
                (lambda q, u, v, b: fit(q, u, v, 0), "this is the v of the nearest u: a look-up, bandwidth 0"),
            ],
            hint="queries[:, None] - u has the shape (m, n), a row for each query",
            praise="attention with Gaussian scores is Nadaraya-Watson regression.",
        )

    @staticmethod
    def previous_token(answer):
        """answer(E (n, v), P (n, n)) -> Q, K (n, any width): position i looks at i - 1 (position 0 is free)."""
        place = "a place is asked for, not a token: build Q and K from P, not from E"
        return judge_head(
            answer,
            "the previous token",
            cures={
                "the next token": "move the 1s of K the other way, or swap Q and K",
                "the position itself": "Q and K mark the same positions: shift the rows of one of them by one",
                "the token two back": "the shift is one too long: shift the rows by one position",
                "the token two ahead": "the shift is too long and goes the other way: shift the rows by one position",
                "the mirrored position": "P[::-1] turns the order round: np.roll(P, 1, axis=0) shifts it by one",
                "everything but the previous token": "the sign is wrong: multiply Q by a positive number",
                "the equal tokens": place,
                "the equal tokens elsewhere": place,
                "all tokens like the previous one": place,
                "all tokens like the next one": place,
                "the tokens after the equal ones": place,
                "the tokens before the equal ones": place,
            },
            recipe="let row i of Q mark position i - 1, and row j of K position j",
            praise="each position looks at the one before it",
        )

    @staticmethod
    def first_token(answer):
        """answer(E (n, v), P (n, n)) -> Q, K (n, any width): every position looks at position 0."""
        return judge_head(
            answer,
            "the first token",
            cures={
                "all positions alike": "each row has equal scores; if all rows of K are alike, swap Q and K",
                "the position itself": "each query marks its own position: let all rows of Q mark position 0",
                "the last token": "the last row of K answers: P[:, :1] is 1 in row 0 and 0 elsewhere",
                "all tokens like the first": "E[0] is found wherever that token stands: mark the place, P[0]",
                "everything but the first token": "the sign is wrong: multiply Q by a positive number",
            },
            recipe="make all rows of Q alike, and let only row 0 of K answer them",
            praise="every position looks at position 0",
        )

    @staticmethod
    def equal_tokens(answer):
        """answer(E (n, v), P (n, n)) -> Q, K (n, any width): each position looks at all that hold its token."""
        shifted = "the rows of Q or K are shifted: row i of both must belong to position i"
        return judge_head(
            answer,
            "the equal tokens",
            cures={
                "the position itself": "only the place is found: compare tokens (E), not positions (P)",
                "the equal tokens elsewhere": "a position holds its own token, too: do not take it out",
                "all other tokens": "the sign is wrong: multiply Q by a positive number",
                "all tokens like the first": "every query asks for E[0]: row i of Q must hold its own token, E[i]",
                "all tokens like the previous one": shifted,
                "all tokens like the next one": shifted,
                "the tokens after the equal ones": shifted,
                "the tokens before the equal ones": shifted,
            },
            recipe="rows of E are equal where the tokens are: make Q and K from E alone",
            praise="each position shares its weight equally among all that hold its token",
        )

    @staticmethod
    def rotate(answer):
        """answer(x (2,), position, theta) -> x turned counter-clockwise by position * theta radians."""

        def turn(x, angle):
            return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ x

        def mix(formula):
            return lambda x, p, t: formula(x[0], x[1], np.cos(p * t), np.sin(p * t))

        turned = "the turned pair is (cos * x[0] - sin * x[1], sin * x[0] + cos * x[1])"
        return judge(
            answer,
            cases=[([1.0, 0.5], 2, 0.3), ([0.7, -1.2], 5, 0.45), ([-0.4, 0.9], 3, 1.1), ([0.6, 0.8], 0, 0.7)],
            right=lambda x, p, t: turn(x, p * t),
            mistakes=[
                (lambda x, p, t: turn(x, -p * t), f"this turns clockwise, the minus is in the wrong place: {turned}"),
                (lambda x, p, t: turn(x, t), "the position plays no part: the angle is position * theta"),
                (lambda x, p, t: turn(x, p), "theta plays no part: the angle is position * theta"),
                (lambda x, p, t: turn(x, p + t), "the angle is position + theta: multiply them"),
                (lambda x, p, t: turn(x, p / t), "the angle is position / theta: multiply them"),
                (lambda x, p, t: turn(x, t**p), "the angle is theta ** position: multiply them"),
                (lambda x, p, t: turn(x, (p + 1) * t), "this turns one step too far: position 0 is not turned at all"),
                (lambda x, p, t: turn(x, 2 * p * t), "this turns by twice the angle position * theta"),
                (lambda x, p, t: turn(x, p * t / 2), "this turns by half the angle position * theta"),
                (
                    lambda x, p, t: turn(x, np.deg2rad(p * t)),
                    "the angle is in radians already, as np.cos expects it: leave out the conversion from degrees",
                ),
                (
                    lambda x, p, t: turn(x, np.rad2deg(p * t)),
                    "np.cos expects radians: do not convert the angle to degrees",
                ),
                (mix(lambda a, b, c, s: [s * a - c * b, c * a + s * b]), f"sin and cos are swapped: {turned}"),
                (mix(lambda a, b, c, s: [c * b - s * a, s * b + c * a]), f"x[0] and x[1] are swapped: {turned}"),
                (mix(lambda a, b, c, s: [c * a + s * b, s * a + c * b]), f"the minus is missing: {turned}"),
                (mix(lambda a, b, c, s: [c * a - s * b, c * b - s * a]), f"there is one minus too many: {turned}"),
                (
                    mix(lambda a, b, c, s: [c * a + s * b, s * a - c * b]),
                    f"this is a mirror image, not a turn, the minus is in the wrong place: {turned}",
                ),
                (mix(lambda a, b, c, s: [c * a - s * b, s * a - c * b]), f"the second sign is wrong: {turned}"),
                (mix(lambda a, b, c, s: [c * a - s * b, b]), f"only the first number is turned: {turned}"),
                (mix(lambda a, b, c, s: [a, s * a + c * b]), f"only the second number is turned: {turned}"),
                (
                    mix(lambda a, b, c, s: [c * a - s * b, s * (c * a - s * b) + c * b]),
                    "the new first number was used for the second one: keep the old x[0] until both are computed",
                ),
                (
                    mix(lambda a, b, c, s: [c * a - s * (s * a + c * b), s * a + c * b]),
                    "the new second number was used for the first one: keep the old x[1] until both are computed",
                ),
                (mix(lambda a, b, c, s: [c * a, c * b]), f"both numbers are only shortened by cos: {turned}"),
                (mix(lambda a, b, c, s: [c * a, s * b]), f"each number needs both, cos and sin: {turned}"),
                (mix(lambda a, b, c, s: [c * a, s * a]), f"x[1] plays no part: {turned}"),
                (mix(lambda a, b, c, s: [c, s]), f"x plays no part: {turned}"),
                (lambda x, p, t: turn(np.eye(2), p * t), "this is the matrix of the turn: multiply it by x"),
                (lambda x, p, t: x + p, "the position is added, which moves the pair: turn it instead"),
                (lambda x, p, t: x + p * t, "the angle is added, which moves the pair: turn it instead"),
                (lambda x, p, t: x * p, "the position is a factor, which stretches the pair: turn it instead"),
                (lambda x, p, t: x * p * t, "the angle is a factor, which stretches the pair: turn it instead"),
                (lambda x, p, t: p * t, "this is the angle: turn x by it"),
                (lambda x, p, t: x, f"the pair is not turned: {turned}"),
            ],
            praise="the angle grows with the position, and the length of the pair stays.",
        )

    @staticmethod
    def self_attention(answer):
        """answer(X (n, d), W_Q (d, d_k), W_K (d, d_k), W_V (d, d_v)) -> Y (n, d_v)."""

        def project(X, W_Q, W_K, W_V):
            return X @ W_Q, X @ W_K, X @ W_V

        return judge(
            answer,
            cases=[
                _draw((4, 5), (5, 3), (5, 3), (5, 2)),
                _draw((5, 6), (6, 4), (6, 4), (6, 4)),
                _draw((6, 3), (3, 3), (3, 3), (3, 2)),
                _draw((4, 5), (5, 3), (5, 3), (5, 2), size=60),
            ],
            right=lambda *case: _attention(*project(*case)),
            mistakes=[
                (
                    lambda X, W_Q, W_K, W_V: _attention(X @ W_Q, X @ W_K, X @ W_V, divisor=np.sqrt(X.shape[1])),
                    "the scores are divided by sqrt(d): it is sqrt(d_k), the width of Q and K, W_Q.shape[1]",
                ),
                (
                    lambda X, W_Q, W_K, W_V: _attention(X @ W_Q, X @ W_K, X),
                    "the weights average X itself: the values are V = X @ W_V",
                ),
                (
                    lambda X, W_Q, W_K, W_V: _attention(X @ W_Q, X @ W_V, X @ W_V),
                    "the keys are made with W_V: K = X @ W_K",
                ),
                (
                    lambda X, W_Q, W_K, W_V: _attention(X @ W_V, X @ W_K, X @ W_V),
                    "the queries are made with W_V: Q = X @ W_Q",
                ),
                (
                    lambda X, W_Q, W_K, W_V: _attention(X @ W_Q, X @ W_Q, X @ W_V),
                    "queries and keys are both made with W_Q: K = X @ W_K",
                ),
                (
                    lambda X, W_Q, W_K, W_V: _attention(X @ W_K, X @ W_K, X @ W_V),
                    "queries and keys are both made with W_K: Q = X @ W_Q",
                ),
                (
                    lambda X, W_Q, W_K, W_V: _attention(X, X @ W_K, X @ W_V),
                    "the queries are X itself: Q = X @ W_Q",
                ),
                (lambda X, W_Q, W_K, W_V: _attention(X @ W_Q, X, X @ W_V), "the keys are X itself: K = X @ W_K"),
                (
                    lambda X, W_Q, W_K, W_V: _attention(X, X, X @ W_V),
                    "the scores compare X with X: W_Q and W_K play no part",
                ),
                (
                    lambda X, W_Q, W_K, W_V: _attention(X, X, X @ W_V, divisor=np.sqrt(W_Q.shape[1])),
                    "the scores compare X with X: W_Q and W_K play no part",
                ),
                (
                    lambda X, W_Q, W_K, W_V: _attention(X, X, X),
                    "this is attention on X itself: W_Q, W_K and W_V play no part",
                ),
                (
                    lambda X, W_Q, W_K, W_V: _attention(X @ W_Q.T, X @ W_K.T, X @ W_V),
                    "W_Q and W_K are transposed: Q = X @ W_Q, K = X @ W_K",
                ),
                *_after(project, [*_scaling("W_Q.shape[1]"), *_WEIGHING, *_ROLES]),
            ],
            hint="Q = X @ W_Q, K = X @ W_K, V = X @ W_V; the scores Q @ K.T are (n, n), the output is A @ V",
            praise="Q, K and V come from the same X: that is self-attention.",
        )

    @staticmethod
    def cross_attention(answer):
        """answer(X (n, d), M (m, d), W_Q (d, d_k), W_K (d, d_k), W_V (d, d_v)) -> Y (n, d_v)."""

        def project(X, M, W_Q, W_K, W_V):
            return X @ W_Q, M @ W_K, M @ W_V

        def source(q, k, v):
            """Attention whose queries, keys and values come from X (0) or M (1)."""
            return lambda *case: _attention(case[q] @ case[2], case[k] @ case[3], case[v] @ case[4])

        return judge(
            answer,
            cases=[
                _draw((3, 6), (5, 6), (6, 4), (6, 4), (6, 2)),
                _draw((4, 5), (4, 5), (5, 3), (5, 3), (5, 3)),
                _draw((6, 3), (4, 3), (3, 3), (3, 3), (3, 2)),
                _draw((3, 6), (5, 6), (6, 4), (6, 4), (6, 2), size=3600),
            ],
            right=lambda *case: _attention(*project(*case)),
            mistakes=[
                (source(0, 0, 0), "all comes from X, M plays no part: K = M @ W_K, V = M @ W_V"),
                (source(1, 1, 1), "all comes from M, X plays no part: Q = X @ W_Q"),
                (source(1, 0, 0), "the roles are swapped: the queries come from X, keys and values from M"),
                (source(0, 1, 0), "the values come from X: those that look are in X, what they carry home is in M"),
                (source(0, 0, 1), "the keys come from X: K = M @ W_K, so that X looks at M"),
                (source(1, 0, 1), "queries and keys changed places: Q = X @ W_Q, K = M @ W_K"),
                (source(1, 1, 0), "queries and keys come from M and the values from X: it is Q from X, K and V from M"),
                (
                    lambda X, M, W_Q, W_K, W_V: _attention(X @ W_Q, M @ W_K, M @ W_V, divisor=np.sqrt(X.shape[1])),
                    "the scores are divided by sqrt(d): it is sqrt(d_k), the width of Q and K, W_Q.shape[1]",
                ),
                (
                    lambda X, M, W_Q, W_K, W_V: _attention(X @ W_K, M @ W_Q, M @ W_V),
                    "W_Q and W_K are exchanged: Q = X @ W_Q, K = M @ W_K",
                ),
                (
                    lambda X, M, W_Q, W_K, W_V: _attention(X @ W_Q, M @ W_V, M @ W_V),
                    "the keys are made with W_V: K = M @ W_K",
                ),
                (
                    lambda X, M, W_Q, W_K, W_V: _attention(X @ W_Q, M @ W_K, M),
                    "the weights average M itself: the values are V = M @ W_V",
                ),
                (lambda X, M, W_Q, W_K, W_V: _attention(X, M @ W_K, M @ W_V), "the queries are X itself: Q = X @ W_Q"),
                (lambda X, M, W_Q, W_K, W_V: _attention(X @ W_Q, M, M @ W_V), "the keys are M itself: K = M @ W_K"),
                (
                    lambda X, M, W_Q, W_K, W_V: _attention(X, M, M @ W_V),
                    "the scores compare X with M: W_Q and W_K play no part",
                ),
                (
                    lambda X, M, W_Q, W_K, W_V: _attention(
                        X @ W_Q, np.vstack([X @ W_K, M @ W_K]), np.vstack([X @ W_V, M @ W_V])
                    ),
                    "keys and values come from X and M together: here only M is looked at",
                ),
                *_after(project, [*_scaling("W_Q.shape[1]"), *_WEIGHING, *_ROLES]),
            ],
            hint="Q = X @ W_Q is (n, d_k), K = M @ W_K and V = M @ W_V have m rows, the scores are (n, m)",
            praise="the rows of X look, the rows of M are looked at: that is cross-attention.",
        )

    @staticmethod
    def permuted(answer):
        """answer(Y (n, d_v), order (n,)) -> what self-attention gives for X[order], if it gives Y for X."""
        moved = "the rows move as the rows of X do"
        return judge(
            answer,
            cases=[
                (*_draw((4, 3)), [2, 0, 3, 1]),
                (*_draw((5, 5)), [3, 0, 4, 2, 1]),
                (*_draw((3, 6)), [1, 2, 0]),
                (*_draw((6, 2)), [4, 0, 1, 5, 3, 2]),
            ],
            right=lambda Y, order: Y[order],
            mistakes=[
                (lambda Y, order: Y, f"Y is unchanged, as if the order had no effect at all: {moved}"),
                (
                    lambda Y, order: Y[np.argsort(order)],
                    "this is the inverse order: row i of the result is row order[i] of Y, as in X[order]",
                ),
                (lambda Y, order: Y[order][order], "the order is applied twice: once is enough"),
                (lambda Y, order: Y[:, order], f"the columns (features) are moved: {moved}, and columns stay"),
                (lambda Y, order: Y[order][:, order], f"rows and columns are both moved: {moved}, and columns stay"),
                (lambda Y, order: Y[::-1], f"the rows are reversed, whatever the order: {moved}"),
                (lambda Y, order: Y[order][::-1], f"the rows are reversed after the move: {moved}"),
                (lambda Y, order: Y[order - 1], "the positions count from 0: take order as it is, without - 1"),
                (lambda Y, order: np.sort(Y, axis=0), f"each column is sorted, which mixes the rows: {moved}"),
                (lambda Y, order: np.sort(Y, axis=1), f"each row is sorted, which mixes the features: {moved}"),
                (lambda Y, order: np.take(Y, order), "np.take without axis picks single numbers: add axis=0"),
                (lambda Y, order: Y[order].T, "this is transposed: keep a row for each position"),
                (lambda Y, order: Y * order[:, None], "the rows are multiplied by the order: use it as an index"),
                (lambda Y, order: Y.mean(axis=0) + 0 * Y, f"every row is the mean of the rows: {moved}"),
                (lambda Y, order: Y.mean(axis=0), f"this is the mean of the rows: {moved}"),
                (lambda Y, order: order, "this is the order itself: use it as an index of the rows of Y"),
                (
                    lambda Y, order: _attention(Y[order], Y[order], Y[order]),
                    f"Y is the result of attention already, no new attention is needed: {moved}",
                ),
            ],
            hint="order holds row numbers, each of 0 to n - 1 once",
            praise="the rows move and nothing else changes: attention alone does not know the order.",
        )

    @staticmethod
    def matrix_attention(answer):
        """answer(Q (..., n_q, d_k), K (..., n_kv, d_k), V (..., n_kv, d_v)) -> Y (..., n_q, d_v)."""
        return judge(
            answer,
            cases=[
                _draw((3, 4), (5, 4), (5, 2)),
                _draw((4, 3), (4, 3), (4, 3)),
                _draw((2, 3, 4, 6), (2, 3, 5, 6), (2, 3, 5, 7)),
                _draw((2, 3, 4, 6), (2, 3, 5, 6), (2, 3, 5, 7), size=3600),
            ],
            right=_attention,
            mistakes=[
                *_scaling("Q.shape[-1]"),
                *_WEIGHING,
                *_ROLES,
                (
                    _weigh(lambda S: softmax(S.ravel()).reshape(S.shape)),
                    "softmax ran over the batch as well: the weights of each query must sum to 1",
                ),
                (
                    lambda Q, K, V: _attention(Q, K, V, axis=0),
                    "softmax ran over axis 0: that is the batch, or in a 2-D matrix the queries; use axis=-1",
                ),
                (
                    lambda Q, K, V: _attention(Q, K, V, axis=1),
                    "softmax ran over axis 1: right for a matrix, but with heads the keys are the last axis, axis=-1",
                ),
                (
                    lambda Q, K, V: _attention(Q, K, V, divisor=np.sqrt(Q.shape[1])),
                    "d_k is taken from Q.shape[1]: with leading axes it is Q.shape[-1]",
                ),
                (
                    lambda Q, K, V: np.dot(softmax(_logits(Q, K)), V),
                    "np.dot pairs every batch and head with every other: use @, which keeps them apart",
                ),
                (
                    lambda Q, K, V: np.dot(softmax(np.dot(Q, np.swapaxes(K, -1, -2)) / np.sqrt(Q.shape[-1])), V),
                    "np.dot pairs every batch and head with every other: use @, which keeps them apart",
                ),
                (
                    lambda Q, K, V: softmax(_logits(Q, K) @ V),
                    "softmax comes before the product with V: the weights belong to the keys",
                ),
                (
                    lambda Q, K, V: _attention(Q, K, V).sum(axis=0),
                    "the first axis is summed away: it is the batch and stays",
                ),
                (
                    lambda Q, K, V: _attention(Q, K, V)[0],
                    "this is only the first matrix of the batch: keep all of them",
                ),
            ],
            hint="K.T reverses all axes, K.swapaxes(-1, -2) only the last two; use @, not np.dot, and keepdims=True; "
            "plain matrices without batch and heads come too",
            praise="one formula for one matrix and for a batch of heads.",
        )

    @staticmethod
    def column_attention(answer):
        """answer(Q (d_k, n_q), K (d_k, n_kv), V (d_v, n_kv)), a COLUMN for each position -> Y (d_v, n_q)."""

        def turned(Q, K, V):
            return Q.T, K.T, V.T

        return judge(
            answer,
            cases=[
                _draw((4, 3), (4, 5), (2, 5)),
                _draw((3, 4), (3, 4), (3, 4)),
                _draw((3, 4), (3, 4), (4, 4)),
                _draw((4, 3), (4, 5), (2, 5), size=3600),
            ],
            right=lambda Q, K, V: _attention(Q.T, K.T, V.T).T,
            mistakes=[
                *_after(turned, _scaling("Q.shape[0]"), transpose=True),
                *_after(turned, _WEIGHING_OF_COLUMNS, transpose=True),
                (
                    lambda Q, K, V: _attention(Q.T, K.T, V.T),
                    "this is transposed: it is (d_v, n_q), a column for each query",
                ),
                (
                    lambda Q, K, V: V @ softmax(Q.T @ K / np.sqrt(len(Q)), axis=0),
                    "the scores are Q^T K, where a column belongs to a key: K^T Q has a column for each query",
                ),
                (
                    lambda Q, K, V: V @ softmax(Q.T @ K / np.sqrt(len(Q)), axis=-1),
                    "the weights of a query are a row here: V @ A needs them in a column, from K^T Q with axis=0",
                ),
                (
                    lambda Q, K, V: _attention(Q, K, V),
                    "this is the row formula on columns, it compares features: the scores are K^T Q, the output V @ A",
                ),
                (
                    lambda Q, K, V: _attention(Q, K, V, divisor=np.sqrt(len(Q))),
                    "this is the row formula on columns, it compares features: the scores are K^T Q, the output V @ A",
                ),
                (
                    lambda Q, K, V: V.T @ softmax(K.T @ Q / np.sqrt(len(Q)), axis=0),
                    "V is transposed, but has its columns already: the output is V @ A",
                ),
                (
                    lambda Q, K, V: softmax(K.T @ Q / np.sqrt(len(Q)), axis=0) @ V,
                    "A @ V is the order for rows: with columns the output is V @ A",
                ),
            ],
            hint="the scores K.T @ Q are (n_kv, n_q), softmax takes each column (axis=0), the output is V @ A",
            praise="the column form is the row form transposed: V A in place of A V.",
        )

    @staticmethod
    def shapes(answer):
        """answer(n_q, n_kv, d, d_k, d_v) -> the shapes of W_V, Q, K, V, A, Y as a list of six pairs."""
        return judge(
            answer,
            cases=[(3, 5, 8, 4, 6), (7, 2, 4, 3, 9)],
            right=lambda n_q, n_kv, d, d_k, d_v: [
                (d, d_v),
                (n_q, d_k),
                (n_kv, d_k),
                (n_kv, d_v),
                (n_q, n_kv),
                (n_q, d_v),
            ],
            mistakes=[],
            hint="n_q, n_kv, d, d_k and d_v are whole numbers",
            praise="rows are positions, and inner widths meet: Q K^T over d_k, A V over n_kv.",
            explain=_first_wrong_shape,
        )


class Prediction(widgets.VBox):
    """A question with options; the recorded guess is compared with the computed answer."""

    def __init__(self, question, options, answer):
        self._question, self._options, self._answer, self.guess = question, list(options), answer, None
        self._radio = widgets.RadioButtons(options=self._options, value=None, layout={"width": "max-content"})
        self._button = widgets.Button(description="This is my guess")
        self._reply = widgets.HTML()
        heading = widgets.HTML(f"<b>{html.escape(question)}</b>")
        super().__init__([heading, self._radio, self._button, self._reply])
        self._button.on_click(self._on_click)
        for control in (self._radio, self._button):
            quiet(control)

    def _on_click(self, _button):
        if self._radio.value is None:
            self._say("Choose an option first.", RED)
        elif self.guess is None:  # only the first guess counts
            self.guess, self._radio.disabled, self._button.disabled = self._radio.value, True, True
            self._compare()

    def _compare(self):
        try:
            right = self._answer()
            if right not in self._options:
                raise ValueError(f"the computed answer {right!r} is not one of the options {self._options}")
            self._say(f"Your guess: {self.guess}. Computed: {right}.", "inherit")
        except Exception as error:  # shown to the reader, as in live.py
            self._say(f"{type(error).__name__}: {error}", RED)

    def _say(self, text, color):
        self._reply.value = f'<div role="status" style="color:{color}">{html.escape(text)}</div>'

    def __repr__(self):
        return "\n".join([self._question, *(f"( ) {option}" for option in self._options)])

    def _repr_mimebundle_(self, **kwargs):
        return {**(super()._repr_mimebundle_(**kwargs) or {}), "text/plain": repr(self)}


def predict(question, options, answer):
    """Ask for a guess before the run; the answer is computed only when one was made.

    question  text; options a list of strings; answer a function without arguments that
              returns the right option
    returns   a widget, to stand on the last line of a cell
    """
    return Prediction(question, options, answer)


def _first_wrong_shape(case, result, target):
    """The first matrix whose shape is wrong, in letters; the numbers of a case are all different."""
    if result.shape != target.shape:
        return "six pairs are expected: the shapes of W_V, Q, K, V, A and Y, in this order."
    if np.array_equal(result, target[:, ::-1]):
        return "all six are exchanged: that is the column convention; here a row belongs to a position."
    if sorted(map(tuple, result)) == sorted(map(tuple, target)):
        return "the six shapes are right, but not their order: W_V, Q, K, V, A, Y."
    letters = dict(zip(case, ("n_q", "n_kv", "d", "d_k", "d_v")))
    place = next(i for i, (given, wanted) in enumerate(zip(result, target)) if not np.array_equal(given, wanted))
    given, wanted = ([letters.get(x, f"{x:g}") for x in pairs[place]] for pairs in (result, target))
    name, reason = _SHAPES[place]
    turned = "the two numbers are exchanged: " if given == wanted[::-1] else ""
    return f"{name} is ({', '.join(wanted)}), not ({', '.join(given)}): {turned}{reason}."


_SHAPES = [
    ("W_V", "it takes a row of width d to a value of width d_v"),
    ("Q", "it has a row for each query, as wide as a key so that the two can be compared"),
    ("K", "it has a row for each key, and the keys stand in the sequence that is looked at"),
    ("V", "it has a row for each key, and what is carried has a width of its own, d_v"),
    ("A", "it has a row for each query and a column for each key"),
    ("Y", "it has a row for each query, a mean of values and so as wide as they are"),
]


def _share(powers):
    return powers / powers.sum()


# attention, right and wrong: what several exercises share


def _draw(*shapes, size=1.0):
    """Random arguments, the first one size times as large; size 1 gives scores of about 1."""
    rng = np.random.default_rng(1)
    first, *others = [0.8 * rng.normal(size=shape) for shape in shapes]
    return (size * first, *others)


def _logits(Q, K):
    return Q @ K.swapaxes(-1, -2) / np.sqrt(Q.shape[-1])


def _attention(Q, K, V, axis=-1, divisor=None):
    S = _logits(Q, K) if divisor is None else Q @ K.swapaxes(-1, -2) / divisor
    return softmax(S, axis=axis) @ V


def _after(prepare, mistakes, transpose=False):
    """The mistakes on Q, K, V, as mistakes on the arguments that `prepare` turns into Q, K, V."""

    def with_arguments(mistake):
        return lambda *case: np.transpose(mistake(*prepare(*case))) if transpose else mistake(*prepare(*case))

    return [(with_arguments(mistake), message) for mistake, message in mistakes]


def _weigh(weights):
    """The attention that gets its weights from the scaled scores in this way."""
    return lambda Q, K, V: weights(_logits(Q, K)) @ V


def _scaling(width):
    """Mistakes in the divisor; width is where the reader finds d_k."""
    return [
        (
            lambda Q, K, V: _attention(Q, K, V, divisor=1),
            "the scores are not scaled: divide them by sqrt(d_k) before softmax",
        ),
        (
            lambda Q, K, V: _attention(Q, K, V, divisor=Q.shape[-1]),
            "the scores are divided by d_k (or twice by its square root): divide once by sqrt(d_k)",
        ),
        (
            lambda Q, K, V: _attention(Q, K, V, divisor=Q.shape[-1] ** -0.5),
            "the scores are multiplied by sqrt(d_k): divide by it",
        ),
        (
            lambda Q, K, V: _attention(Q, K, V, divisor=np.sqrt(K.shape[-2])),
            f"the scores are divided by the square root of the number of keys: d_k is the width, {width}",
        ),
        (
            lambda Q, K, V: _attention(Q, K, V, divisor=np.sqrt(Q.shape[-2])),
            f"the scores are divided by the square root of the number of queries: d_k is the width, {width}",
        ),
        (
            lambda Q, K, V: _attention(Q, K, V, divisor=np.sqrt(V.shape[-1])),
            f"the scores are divided by sqrt(d_v): d_k is the width of Q and K, {width}",
        ),
        (
            lambda Q, K, V: softmax(_logits(Q, K) * np.sqrt(Q.shape[-1])) / np.sqrt(Q.shape[-1]) @ V,
            "the weights are divided by sqrt(d_k) and sum to less than 1: divide the scores, before softmax",
        ),
    ]


_KEEPDIMS = "keepdims=True is missing: the numbers of one row were used for a column"

_NORMALIZING = [
    (_weigh(lambda S: np.exp(S - S.max(axis=-1, keepdims=True))), "the weights do not sum to 1: divide by their sum"),
    (
        _weigh(lambda S: np.exp(S) / np.exp(S).sum(axis=-1, keepdims=True)),
        "exp overflows for large scores, inf / inf is NaN: subtract the largest score of each query first",
    ),
    (
        _weigh(lambda S: np.exp(S - S.max()) / np.exp(S - S.max()).sum(axis=-1, keepdims=True)),
        "one maximum was subtracted for all queries, so one with lower scores gets 0 / 0 = NaN: each needs its own",
    ),
    (_weigh(lambda S: S), "the scores are used as weights: softmax is missing"),
    (lambda Q, K, V: Q @ K.swapaxes(-1, -2) @ V, "the scores are used as weights: scaling and softmax are missing"),
    (_weigh(lambda S: S / S.sum(axis=-1, keepdims=True)), "the scores are divided by their sum, but exp is missing"),
    (_weigh(lambda S: softmax(-S)), "the sign is wrong: the smallest score gets the largest weight"),
    (_weigh(lambda S: softmax(S, temperature=0)), "each query takes only its best key: softmax shares the weight"),
    (
        _weigh(lambda S: softmax(S, temperature=np.inf)),
        "every query gets the same mean of all values: the scores play no part",
    ),
    (
        _weigh(lambda S: softmax(S.reshape(*S.shape[:-2], -1)).reshape(S.shape)),
        "softmax ran over the whole matrix: the weights of each query must sum to 1",
    ),
    (_weigh(lambda S: softmax(softmax(S))), "softmax was taken twice: once is enough"),
    (lambda Q, K, V: softmax(_logits(Q, K)), "these are the weights: the output is their weighted sum of the values"),
    (lambda Q, K, V: _logits(Q, K), "these are the scores: softmax and the weighted sum are missing"),
    (
        lambda Q, K, V: Q @ K.swapaxes(-1, -2),
        "these are the scores before scaling: scaling, softmax and the weighted sum are missing",
    ),
    (lambda Q, K, V: V, "these are the values themselves: the weighted sum is missing"),
]

_WEIGHING = [
    *_NORMALIZING,
    (
        _weigh(lambda S: softmax(S, axis=-2)),
        "softmax ran over the queries (down the columns): each row of weights must sum to 1, use axis=-1",
    ),
    (
        lambda Q, K, V: _attention(Q, K, V, axis=-2, divisor=1),
        "softmax ran over the queries (down the columns), and the scores are not scaled: axis=-1 and sqrt(d_k)",
    ),
    (_weigh(lambda S: np.exp(S) / np.exp(S).sum(axis=-1)), _KEEPDIMS),
    (
        _weigh(
            lambda S: np.exp(S - S.max(axis=-1, keepdims=True)) / np.exp(S - S.max(axis=-1, keepdims=True)).sum(axis=-1)
        ),
        _KEEPDIMS,
    ),
    (_weigh(lambda S: np.exp(S - S.max(axis=-1)) / np.exp(S - S.max(axis=-1)).sum(axis=-1)), _KEEPDIMS),
    (_weigh(lambda S: np.exp(S - S.max()) / np.exp(S - S.max()).sum(axis=-1)), _KEEPDIMS),
]

_WEIGHING_OF_COLUMNS = [
    *_NORMALIZING,
    (
        _weigh(lambda S: softmax(S, axis=-2)),
        "softmax ran over the queries (along the rows of K^T Q): each column must sum to 1, use axis=0",
    ),
    (
        lambda Q, K, V: _attention(Q, K, V, axis=-2, divisor=1),
        "softmax ran over the queries (along the rows of K^T Q), and the scores are not scaled: axis=0 and sqrt(d_k)",
    ),
]

_ROLES = [
    (
        lambda Q, K, V: _attention(K, Q, V),
        "queries and keys are swapped: the scores are Q K^T, with a row for each query",
    ),
    (
        _weigh(lambda S: softmax(S).swapaxes(-1, -2)),
        "the weights are transposed: the output is A @ V, each row of A weighs the values for one query",
    ),
    (
        lambda Q, K, V: _attention(Q, V, V),
        "the values stand where the keys should: the scores are Q K^T",
    ),
    (
        lambda Q, K, V: _attention(Q, K, K),
        "the weights average the keys: the output is A @ V",
    ),
    (
        lambda Q, K, V: _attention(Q, K, Q),
        "the weights average the queries: the output is A @ V",
    ),
    (lambda Q, K, V: _attention(Q, Q, V), "the queries are compared with themselves: the scores are Q K^T"),
    (lambda Q, K, V: _attention(K, K, V), "the keys are compared with themselves: the scores are Q K^T"),
    (
        lambda Q, K, V: _attention(Q, K, V).swapaxes(-1, -2),
        "this is transposed: it has a row for each query",
    ),
]
