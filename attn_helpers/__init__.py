"""Helpers of the attention notebooks: the maths, real data, pictures, sliders, exercises."""

from attn_helpers import plots, training
from attn_helpers.attention import entropy, scaled_dot_product_attention, scores, softmax
from attn_helpers.blockwise import blockwise_attention
from attn_helpers.exercises import check, predict
from attn_helpers.explorers import (
    head_explorer,
    hull_explorer,
    kernel_explorer,
    mask_explorer,
    pipeline_explorer,
    rope_explorer,
    scaling_explorer,
    sense_explorer,
    temperature_explorer,
)
from attn_helpers.masks import causal_mask, combine_masks, padding_mask, to_additive, to_boolean, window_mask
from attn_helpers.rope import apply_rope
from attn_helpers.samples import (
    MINILM_HEADS,
    MINILM_SENTENCES,
    RELATIONS,
    SENTENCES,
    SMOLLM2_HEADS,
    SMOLLM2_TEXTS,
    bank_senses,
    minilm_head,
    minilm_states,
    padded_batch,
    smollm2_head,
    vocabulary,
    word_relation,
    word_vectors,
)

__all__ = [
    "MINILM_HEADS",
    "MINILM_SENTENCES",
    "RELATIONS",
    "SENTENCES",
    "SMOLLM2_HEADS",
    "SMOLLM2_TEXTS",
    "apply_rope",
    "bank_senses",
    "causal_mask",
    "blockwise_attention",
    "check",
    "combine_masks",
    "entropy",
    "head_explorer",
    "hull_explorer",
    "kernel_explorer",
    "mask_explorer",
    "minilm_head",
    "minilm_states",
    "padded_batch",
    "padding_mask",
    "pipeline_explorer",
    "plots",
    "predict",
    "rope_explorer",
    "scaled_dot_product_attention",
    "scaling_explorer",
    "scores",
    "sense_explorer",
    "smollm2_head",
    "softmax",
    "temperature_explorer",
    "to_additive",
    "to_boolean",
    "training",
    "vocabulary",
    "window_mask",
    "word_relation",
    "word_vectors",
]
