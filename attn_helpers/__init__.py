"""Helpers of the attention notebooks: the maths, real vectors, pictures, sliders, exercises."""

from attn_helpers import plots
from attn_helpers.attention import entropy, scaled_dot_product_attention, scores, softmax
from attn_helpers.exercises import check, predict
from attn_helpers.explorers import hull_explorer, kernel_explorer, temperature_explorer
from attn_helpers.samples import SENTENCES, vocabulary, word_vectors

__all__ = [
    "SENTENCES",
    "check",
    "entropy",
    "hull_explorer",
    "kernel_explorer",
    "plots",
    "predict",
    "scaled_dot_product_attention",
    "scores",
    "softmax",
    "temperature_explorer",
    "vocabulary",
    "word_vectors",
]
