"""Feedback on the reader's answers: check.<exercise>(answer), and predict() before a run."""

from attn_helpers.exercises import expectation as notebook_1
from attn_helpers.exercises import induction, leaks, splits
from attn_helpers.exercises import masks as notebook_5
from attn_helpers.exercises import matrix_form as notebook_4
from attn_helpers.exercises import multi_head as notebook_7
from attn_helpers.exercises import query_key_value as notebook_2
from attn_helpers.exercises import scaling as notebook_6
from attn_helpers.exercises import self_attention as notebook_3
from attn_helpers.exercises.prediction import predict

__all__ = ["check", "predict"]


class check:
    """One function for each exercise; each takes the reader's function and returns Feedback."""

    softmax = staticmethod(notebook_1.softmax)
    attend = staticmethod(notebook_1.attend)
    effective_positions = staticmethod(notebook_1.effective_positions)
    kernel_regression = staticmethod(notebook_1.kernel_regression)

    previous_token = staticmethod(notebook_2.previous_token)
    first_token = staticmethod(notebook_2.first_token)
    equal_tokens = staticmethod(notebook_2.equal_tokens)
    rotate = staticmethod(notebook_2.rotate)

    self_attention = staticmethod(notebook_3.self_attention)
    cross_attention = staticmethod(notebook_3.cross_attention)
    permuted = staticmethod(notebook_3.permuted)

    matrix_attention = staticmethod(notebook_4.matrix_attention)
    column_attention = staticmethod(notebook_4.column_attention)
    shapes = staticmethod(notebook_4.shapes)

    causal_padding_mask = staticmethod(notebook_5.causal_padding_mask)
    finds_leak = staticmethod(leaks.finds_leak)
    additive_mask = staticmethod(notebook_5.additive_mask)
    masked_softmax = staticmethod(notebook_5.masked_softmax)

    log_softmax = staticmethod(notebook_6.log_softmax)
    head_scores = staticmethod(notebook_6.head_scores)
    merge_blocks = staticmethod(notebook_6.merge_blocks)

    split_heads = staticmethod(notebook_7.split_heads)
    merge_heads = staticmethod(notebook_7.merge_heads)
    multi_head = staticmethod(notebook_7.multi_head)
    scrambles = staticmethod(splits.scrambles)
    induction_weight = staticmethod(induction.induction_weight)
