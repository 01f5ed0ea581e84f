"""The exercises of notebook 2: heads built by hand, and the turn of RoPE."""

import numpy as np

from attn_helpers.judging import judge
from attn_helpers.puzzles import judge_head


def previous_token(answer):
    """answer(E (n, v), P (n, n)) -> Q, K (n, any width): position i looks at i - 1 (position 0 is free)."""
    place = "a place is asked for, not a token: build Q and K from P, not from E"
    return judge_head(
        answer,
        "the previous token",
        cures={
            "the next token": "move the 1s the other way: swap Q and K",
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


def _turn(x, angle):
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) @ x


def _mix(formula):
    return lambda x, p, t: formula(x[0], x[1], np.cos(p * t), np.sin(p * t))


_TURNED = "the turned pair is (cos * x[0] - sin * x[1], sin * x[0] + cos * x[1])"


_ROTATE = [
    (lambda x, p, t: _turn(x, -p * t), f"this turns clockwise, the minus is in the wrong place: {_TURNED}"),
    (lambda x, p, t: _turn(x, t), "the position plays no part: the angle is position * theta"),
    (lambda x, p, t: _turn(x, p), "theta plays no part: the angle is position * theta"),
    (lambda x, p, t: _turn(x, p + t), "the angle is position + theta: multiply them"),
    (lambda x, p, t: _turn(x, p / t), "the angle is position / theta: multiply them"),
    (lambda x, p, t: _turn(x, t**p), "the angle is theta ** position: multiply them"),
    (lambda x, p, t: _turn(x, (p + 1) * t), "this turns one step too far: position 0 is not turned at all"),
    (lambda x, p, t: _turn(x, 2 * p * t), "this turns by twice the angle position * theta"),
    (lambda x, p, t: _turn(x, p * t / 2), "this turns by half the angle position * theta"),
    (
        lambda x, p, t: _turn(x, np.deg2rad(p * t)),
        "the angle is in radians already, as np.cos expects it: leave out the conversion from degrees",
    ),
    (
        lambda x, p, t: _turn(x, np.rad2deg(p * t)),
        "np.cos expects radians: do not convert the angle to degrees",
    ),
    (_mix(lambda a, b, c, s: [s * a - c * b, c * a + s * b]), f"sin and cos are swapped: {_TURNED}"),
    (_mix(lambda a, b, c, s: [c * b - s * a, s * b + c * a]), f"x[0] and x[1] are swapped: {_TURNED}"),
    (_mix(lambda a, b, c, s: [c * a + s * b, s * a + c * b]), f"the minus is missing: {_TURNED}"),
    (_mix(lambda a, b, c, s: [c * a - s * b, c * b - s * a]), f"there is one minus too many: {_TURNED}"),
    (
        _mix(lambda a, b, c, s: [c * a + s * b, s * a - c * b]),
        f"this is a mirror image, not a turn, the minus is in the wrong place: {_TURNED}",
    ),
    (_mix(lambda a, b, c, s: [c * a - s * b, s * a - c * b]), f"the second sign is wrong: {_TURNED}"),
    (_mix(lambda a, b, c, s: [c * a - s * b, b]), f"only the first number is turned: {_TURNED}"),
    (_mix(lambda a, b, c, s: [a, s * a + c * b]), f"only the second number is turned: {_TURNED}"),
    (
        _mix(lambda a, b, c, s: [c * a - s * b, s * (c * a - s * b) + c * b]),
        "the new first number was used for the second one: keep the old x[0] until both are computed",
    ),
    (
        _mix(lambda a, b, c, s: [c * a - s * (s * a + c * b), s * a + c * b]),
        "the new second number was used for the first one: keep the old x[1] until both are computed",
    ),
    (_mix(lambda a, b, c, s: [c * a, c * b]), f"both numbers are only shortened by cos: {_TURNED}"),
    (_mix(lambda a, b, c, s: [c * a, s * b]), f"each number needs both, cos and sin: {_TURNED}"),
    (_mix(lambda a, b, c, s: [c * a, s * a]), f"x[1] plays no part: {_TURNED}"),
    (_mix(lambda a, b, c, s: [c, s]), f"x plays no part: {_TURNED}"),
    (lambda x, p, t: _turn(np.eye(2), p * t), "this is the matrix of the turn: multiply it by x"),
    (lambda x, p, t: x + p, "the position is added, which moves the pair: turn it instead"),
    (lambda x, p, t: x + p * t, "the angle is added, which moves the pair: turn it instead"),
    (lambda x, p, t: x * p, "the position is a factor, which stretches the pair: turn it instead"),
    (lambda x, p, t: x * p * t, "the angle is a factor, which stretches the pair: turn it instead"),
    (lambda x, p, t: p * t, "this is the angle: turn x by it"),
    (lambda x, p, t: x, f"the pair is not turned: {_TURNED}"),
]


def rotate(answer):
    """answer(x (2,), position, theta) -> x turned counter-clockwise by position * theta radians."""
    return judge(
        answer,
        cases=[([1.0, 0.5], 2, 0.3), ([0.7, -1.2], 5, 0.45), ([-0.4, 0.9], 3, 1.1), ([0.6, 0.8], 0, 0.7)],
        right=lambda x, p, t: _turn(x, p * t),
        mistakes=_ROTATE,
        praise="the angle grows with the position, and the length of the pair stays.",
    )
