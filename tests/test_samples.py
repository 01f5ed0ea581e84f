"""The stored data, and what importing the package does and does not do."""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest

import attn_helpers
from attn_helpers import (
    MINILM_HEADS,
    MINILM_SENTENCES,
    RELATIONS,
    SENTENCES,
    SMOLLM2_HEADS,
    SMOLLM2_TEXTS,
    apply_rope,
    bank_senses,
    minilm_head,
    minilm_states,
    padded_batch,
    scaled_dot_product_attention,
    smollm2_head,
    vocabulary,
    word_relation,
    word_vectors,
)
from attn_helpers.samples import (
    MINILM_CHANGED,
    MODELS,
    ablation,
    head_survey,
    minilm_layer,
    minilm_maps,
    smollm2_maps,
)

PACKAGE = Path(attn_helpers.__file__).parent
WATCHED_IMPORT = """
import json, sys, threading
opened, sockets = [], []

def watch(event, args):
    if event == "open" and isinstance(args[0], str):
        opened.append(args[0])
    if event.startswith("socket."):
        sockets.append(event)

import matplotlib, numpy
settings, state, threads = matplotlib.rcParams.copy(), numpy.random.get_state()[1].tolist(), threading.active_count()
errors = numpy.geterr()
sys.addaudithook(watch)
import attn_helpers
facts = dict(
    file=attn_helpers.__file__,
    data=[name for name in opened if name.endswith(".npz")],
    settings=matplotlib.rcParams.copy() == settings,
    random_state=numpy.random.get_state()[1].tolist() == state,
    errors=numpy.geterr() == errors,
    threads=threading.active_count() - threads,
    pyplot="matplotlib.pyplot" in sys.modules,
)
shape = attn_helpers.word_vectors(["river", "bank"]).shape
facts.update(shape=shape, data_later=[name for name in opened if name.endswith(".npz")], sockets=sockets)
print(json.dumps(facts))
"""


def nearest(word, n):
    """The n other words with the largest cosine, nearest first."""
    return nearest_to(word_vectors([word])[0], n, {word})


def nearest_to(vector, n, but):
    """The n words with the largest cosine to a vector, without those in `but`."""
    vectors = word_vectors(vocabulary())
    cosines = vectors @ vector / np.linalg.norm(vectors, axis=1)
    return [word for word in np.array(vocabulary())[np.argsort(-cosines)] if word not in but][:n]


def of_head(name, array):
    """The entry of one head, written layer.head, in an array (layers, heads, ...)."""
    return array[tuple(map(int, name.split(".")))]


def best(statistic, n=1):
    """The n heads with the largest statistic (layers, heads), the largest first."""
    return [".".join(map(str, divmod(i, statistic.shape[1]))) for i in np.argsort(-statistic, axis=None)[:n]]


def watched_import(folder, package_parent):
    """Import the package in a new interpreter, in `folder`, and report what it did."""
    command = [sys.executable, "-B", "-c", WATCHED_IMPORT]
    env = {**os.environ, "PYTHONPATH": str(package_parent), "MPLCONFIGDIR": matplotlib.get_configdir()}
    run = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=600)
    assert run.returncode == 0, run.stderr
    assert run.stderr == ""
    return json.loads(run.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    """What one import of the package did, seen from an empty folder."""
    return watched_import(tmp_path_factory.mktemp("elsewhere"), PACKAGE.parent)


def test_vocabulary_is_a_tuple_of_different_lower_case_words():
    words = vocabulary()
    assert isinstance(words, tuple)
    assert len(words) == len(set(words)) == 2029
    assert all(isinstance(word, str) and word == word.lower().strip() != "" for word in words)


def test_vocabulary_starts_with_the_most_frequent_words():
    assert vocabulary()[:5] == ("the", ",", ".", "of", "to")


def test_every_word_has_a_finite_vector_of_its_own():
    vectors = word_vectors(vocabulary())
    assert vectors.shape == (2029, 50)
    assert vectors.dtype == np.float64
    assert np.isfinite(vectors).all()
    assert len(np.unique(vectors, axis=0)) == 2029


@pytest.mark.parametrize(
    ("word", "start"),
    [("the", [0.418, 0.24968, -0.41242, 0.1217, 0.34527]), ("king", [0.50451, 0.68607, -0.59517, -0.022801, 0.60046])],
)
def test_vectors_are_those_of_the_published_file(word, start):
    np.testing.assert_allclose(word_vectors([word])[0, :5], start, rtol=2**-11)  # stored as float16


def test_rows_follow_the_order_of_the_words_and_may_repeat():
    vectors = word_vectors(["bank", "the", "bank"])
    assert np.array_equal(vectors[0], vectors[2])
    assert np.array_equal(vectors[1], word_vectors(["the"])[0])
    assert not np.array_equal(vectors[0], vectors[1])


@pytest.mark.parametrize(
    ("word", "near"),
    [
        ("king", {"prince", "queen"}),
        ("river", {"valley", "lake"}),
        ("monday", {"tuesday", "wednesday", "thursday", "friday"}),
        ("two", {"three", "four", "five"}),
        ("good", {"better"}),
        ("doctor", {"nurse", "patient"}),
        ("bank", {"banks"}),
    ],
)
def test_near_words_have_near_meanings(word, near):
    assert set(nearest(word, len(near))) == near


def test_king_is_to_man_as_queen_is_to_woman():
    man, king, woman = word_vectors(["man", "king", "woman"])
    assert nearest_to(king - man + woman, 1, {"man", "king", "woman"}) == ["queen"]


def test_vectors_are_a_new_array_each_time():
    first = word_vectors(["river"])
    before = first.copy()
    first[:] = 0
    assert np.array_equal(word_vectors(["river"]), before)


@pytest.mark.parametrize("kind", [list, tuple, iter, np.array, dict.fromkeys])
def test_words_may_come_in_any_collection(kind):
    assert np.array_equal(word_vectors(kind(["river", "bank"])), word_vectors(["river", "bank"]))


@pytest.mark.parametrize("kind", [list, tuple, np.array])
def test_no_words_give_no_rows(kind):
    vectors = word_vectors(kind([]))
    assert vectors.shape == (0, 50)
    assert vectors.dtype == np.float64


def test_an_unknown_word_is_refused_with_its_place_and_near_ones():
    with pytest.raises(ValueError, match=r"words\[1\] is 'River'.*near ones: river\b"):
        word_vectors(["bank", "River"])


@pytest.mark.parametrize(
    ("word", "suggestion"), [("BANKS", "banks"), (" river\n", "river"), ("rivr", "river"), ("qeen", "queen")]
)
def test_an_unknown_word_is_answered_with_the_word_that_was_meant(word, suggestion):
    with pytest.raises(ValueError, match=f"near ones: .*{suggestion}"):
        word_vectors([word])


@pytest.mark.parametrize("word", ["zzzzqqq", "", "12345678"])
def test_a_word_with_nothing_near_is_said_to_have_none(word):
    with pytest.raises(ValueError, match="nothing near"):
        word_vectors([word])


@pytest.mark.parametrize("word", [None, 5, 1.5, b"river", ["river"], {}, ("river",)], ids=repr)
def test_what_is_not_a_word_is_refused_with_its_place(word):
    with pytest.raises(ValueError, match=r"words\[1\]"):
        word_vectors(["bank", word])


@pytest.mark.parametrize("words", ["river", "the old song", "", b"river", None, 5], ids=repr)
def test_what_is_not_a_list_of_words_is_refused_by_name(words):
    with pytest.raises(TypeError, match="words is"):
        word_vectors(words)


@pytest.mark.parametrize("name", SENTENCES)
def test_every_word_of_a_sentence_and_its_name_have_a_vector(name):
    words = SENTENCES[name].split()
    assert len(word_vectors([*words, name])) == len(words) + 1
    assert 8 <= len(words) <= 11


@pytest.mark.parametrize("head", MINILM_HEADS)
@pytest.mark.parametrize("sentence", MINILM_SENTENCES)
def test_every_map_of_minilm_is_recomputed_from_its_vectors_and_matrices(head, sentence):
    found = minilm_head(head, sentence)
    Q, K, V = (found.X @ W + b for W, b in ((found.W_Q, found.b_Q), (found.W_K, found.b_K), (found.W_V, found.b_V)))
    weights = scaled_dot_product_attention(Q, K, V)[1]
    assert np.abs(weights - found.reference).max() <= 1e-3


@pytest.mark.parametrize("head", SMOLLM2_HEADS)
@pytest.mark.parametrize("text", SMOLLM2_TEXTS)
def test_every_map_of_smollm2_is_recomputed_from_queries_and_keys_with_rope_and_the_causal_mask(head, text):
    found = smollm2_head(head, text)
    query, key = (apply_rope(x, base=100000) for x in (found.Q, found.K))
    weights = scaled_dot_product_attention(query, key, found.V, is_causal=True)[1]
    assert np.abs(weights - found.reference).max() <= 1e-5


@pytest.mark.parametrize("sentence", MINILM_SENTENCES)
def test_a_bert_head_holds_the_arrays_it_names(sentence):
    found = minilm_head("3.1", sentence)
    n = len(found.tokens)
    assert found.name == "3.1" and found.tokens[0] == "[CLS]" and found.tokens[-1] == "[SEP]"
    assert all(isinstance(token, str) for token in found.tokens)
    assert found.X.shape == (n, 384) and found.reference.shape == (n, n)
    assert {W.shape for W in (found.W_Q, found.W_K, found.W_V)} == {(384, 32)}
    assert {b.shape for b in (found.b_Q, found.b_K, found.b_V)} == {(32,)}
    assert {array.dtype for array in found if isinstance(array, np.ndarray)} == {np.dtype(np.float64)}
    assert np.array_equal(found.X, minilm_states(sentence)[3])
    assert minilm_states(sentence).shape == (5, n, 384)
    assert np.allclose(found.reference.sum(axis=1), 1, atol=1e-5)


@pytest.mark.parametrize("text", SMOLLM2_TEXTS)
def test_a_gpt_head_holds_the_arrays_it_names(text):
    found = smollm2_head("18.6", text)
    n = len(found.tokens)
    assert found.tokens[0] == "<|im_start|>"
    assert {array.shape for array in (found.Q, found.K, found.V)} == {(n, 64)}
    assert found.reference.shape == (n, n) and not np.triu(found.reference, 1).any()


def test_the_random_text_is_twelve_different_words_twice():
    tokens = smollm2_head("16.0", "random").tokens[1:]
    assert tokens[:12] == tokens[12:] and len(set(tokens)) == 12


ALL_MAPS = [
    *((minilm_maps, name, (6, 12)) for name in (*MINILM_SENTENCES, *MINILM_CHANGED.values())),
    *((smollm2_maps, name, (30, 9)) for name in SMOLLM2_TEXTS),
]


@pytest.mark.parametrize(("load", "name", "heads"), ALL_MAPS)
def test_every_row_of_all_maps_is_stored_in_8_bits_and_sums_to_one(load, name, heads):
    found = load(name)
    n = len(found.tokens)
    assert found.weights.shape == (*heads, n, n) and found.weights.dtype == np.float64
    assert np.abs(found.weights.sum(axis=-1) - 1).max() < 1e-12
    np.testing.assert_allclose(found.weights * 255, np.round(found.weights * 255), atol=1e-9)
    assert found.weights.min() == 0 and found.weights.max() > 0.9
    different = len(np.unique(found.weights.reshape(-1, n * n), axis=0))
    assert different > 0.98 * heads[0] * heads[1]  # two heads that only look at the first token look the same


@pytest.mark.parametrize("sentence", MINILM_SENTENCES)
def test_all_maps_of_minilm_agree_with_those_of_single_heads(sentence):
    found = minilm_maps(sentence)
    for name in MINILM_HEADS:
        head = minilm_head(name, sentence)
        assert found.tokens == head.tokens
        assert np.abs(of_head(name, found.weights) - head.reference).max() < 0.004


@pytest.mark.parametrize("text", SMOLLM2_TEXTS)
def test_all_maps_of_smollm2_agree_with_those_of_single_heads_and_see_no_future(text):
    found = smollm2_maps(text)
    for name in SMOLLM2_HEADS:
        head = smollm2_head(name, text)
        assert found.tokens == head.tokens
        assert np.abs(of_head(name, found.weights) - head.reference).max() < 0.004
    assert not np.triu(found.weights, 1).any() and (found.weights[:, :, 0, 0] == 1).all()


@pytest.mark.parametrize(
    ("sentence", "old", "new", "meant"),
    [("suitcase", "big", "small", "trophy"), ("animal", "tired", "wide", "animal")],
)
def test_a_changed_sentence_differs_in_one_word_and_its_maps_in_little_else(sentence, old, new, meant):
    before, after = minilm_maps(sentence), minilm_maps(MINILM_CHANGED[sentence])
    assert after.tokens == tuple(new if token == old else token for token in before.tokens) != before.tokens
    asks, at = before.tokens.index("it"), before.tokens.index(meant)
    weights = [of_head("3.1", maps.weights)[asks] for maps in (before, after)]
    assert weights[0][at] > 0.5 and weights[0][at] != weights[1][at]
    assert np.argmax(weights[1]) == at  # still the same noun, which is now the wrong one


@pytest.mark.parametrize("sentence", MINILM_SENTENCES)
def test_a_layer_of_minilm_is_recomputed_from_its_vectors_and_matrices(sentence):
    found = minilm_layer(sentence)
    parts = ((found.W_Q, found.b_Q), (found.W_K, found.b_K), (found.W_V, found.b_V))
    Q, K, V = ((found.X @ W + b).reshape(-1, found.heads, 32) for W, b in parts)  # (n, 12, 32)
    powers = np.exp(np.einsum("qhd,khd->hqk", Q, K) / np.sqrt(32))
    weights = powers / powers.sum(axis=-1, keepdims=True)
    output = np.einsum("hqk,khd->qhd", weights, V).reshape(-1, 384) @ found.W_O + found.b_O  # (n, 384)
    assert np.abs(output - found.reference).max() < 1e-3
    assert np.abs(weights - minilm_maps(sentence).weights[found.number]).max() < 0.005


def test_a_layer_holds_the_arrays_it_names_and_its_heads_side_by_side():
    found = minilm_layer("mary")
    n = len(found.tokens)
    assert (found.number, found.heads) == (2, 12) and found.tokens == minilm_head("2.0", "mary").tokens
    assert found.X.shape == found.reference.shape == (n, 384)
    assert np.array_equal(found.X, minilm_states("mary")[2])
    assert {W.shape for W in (found.W_Q, found.W_K, found.W_V, found.W_O)} == {(384, 384)}
    assert {b.shape for b in (found.b_Q, found.b_K, found.b_V, found.b_O)} == {(384,)}
    assert {array.dtype for array in found if isinstance(array, np.ndarray)} == {np.dtype(np.float64)}
    for name in ("2.0", "2.8"):
        head, columns = minilm_head(name), slice(32 * int(name[2:]), 32 * int(name[2:]) + 32)
        for part in ("W_Q", "b_Q", "W_K", "b_K", "W_V", "b_V"):
            assert np.array_equal(getattr(found, part)[..., columns], getattr(head, part))


@pytest.mark.parametrize(("model", "heads", "tokens"), [("MiniLM", (6, 12), 30), ("SmolLM2", (30, 9), 65)])
def test_a_survey_has_nine_statistics_of_every_head(model, heads, tokens):
    found = head_survey(model)
    shares = ["previous", "next", "self", "first", "delimiter", "duplicate", "induction"]
    assert [*found] == [*shares[:5], "distance", "entropy", *shares[5:]]
    assert {(values.shape, values.dtype) for values in found.values()} == {(heads, np.dtype(np.float64))}
    assert all((values == np.round(values, 3)).all() and values.min() >= 0 for values in found.values())
    assert all(found[name].max() <= 1 for name in shares)
    assert 5 < found["distance"].max() < tokens and 2.5 < found["entropy"].max() < np.log2(tokens)
    assert len({values.tobytes() for values in found.values()}) == 9


def test_the_models_are_those_that_were_surveyed():
    assert [head_survey(model)["self"].size for model in MODELS] == [72, 270]


def test_known_heads_of_minilm_stand_out_in_its_survey():
    found = head_survey("MiniLM")
    assert best(found["previous"]) == best(-found["entropy"]) == ["0.2"] and found["previous"][0, 2] > 0.99
    assert best(found["next"]) == ["1.8"] and 0.6 < found["next"][1, 8] < 0.8
    assert best(found["first"]) == ["4.5"] and found["first"][4, 5] > 0.7
    assert best(found["delimiter"]) == ["3.11"] and 0.3 < found["delimiter"][3, 11] < 0.6
    assert best(found["duplicate"]) == ["2.9"] and found["induction"].max() < 0.1
    assert abs(found["distance"][0, 2] - 1) < 0.05


def test_known_heads_of_smollm2_stand_out_in_its_survey():
    found = head_survey("SmolLM2")
    assert not found["next"].any()
    assert best(found["induction"]) == ["18.6"] and found["induction"][18, 6] > 0.8
    assert best(found["previous"]) == ["16.0"] and found["previous"][16, 0] > 0.7
    assert best(found["duplicate"]) == ["14.3"] and found["duplicate"][14, 3] > 0.5
    assert found["first"][18, 8] > 0.98 and 0.3 < found["first"].mean() < 0.6


@pytest.mark.parametrize(
    ("model", "load", "names"), [("MiniLM", minilm_maps, MINILM_SENTENCES), ("SmolLM2", smollm2_maps, SMOLLM2_TEXTS)]
)
@pytest.mark.parametrize(
    ("statistic", "of"),
    [
        ("previous", lambda A: np.diagonal(A, -1, 2, 3)),
        ("self", lambda A: np.diagonal(A, 0, 2, 3)),
        ("first", lambda A: A[:, :, 1:, 0]),
    ],
)
def test_a_survey_agrees_with_the_maps_of_other_texts(model, load, names, statistic, of):
    # not the texts of the survey: heads keep their ways, and only that
    seen = np.mean([of(load(name).weights).mean(axis=-1) for name in names], axis=0)
    assert np.corrcoef(seen.ravel(), head_survey(model)[statistic].ravel())[0, 1] > 0.86


def test_the_ablation_names_its_heads():
    found = ablation()
    kinds = ("none", "one induction head", "five induction heads", "one previous-token head", "ten first-token heads")
    assert found.names == (*kinds, *(f"ten others, draw {i}" for i in range(1, 7)))
    assert [len(heads) for heads in found.heads] == [0, 1, 5, 1, 10] + [10] * 6
    assert all(len(set(heads)) == len(heads) for heads in found.heads)
    assert found.repeated.shape == found.text.shape == (11,)
    known = head_survey("SmolLM2")
    assert list(found.heads[1]) == best(known["induction"]) and found.heads[2][:1] == found.heads[1]
    assert set(found.heads[2]) == set(best(known["induction"], 5))
    assert list(found.heads[3]) == best(known["previous"])
    first = smollm2_maps("random").weights[:, :, 1:, 0].mean(axis=-1)  # (30, 9)
    assert all(of_head(name, first) > 0.75 for name in found.heads[4])
    others = {name for heads in found.heads[5:] for name in heads}
    assert len(others) > 30 and len({frozenset(heads) for heads in found.heads[5:]}) == 6
    assert all(2 <= int(name.split(".")[0]) < 30 and int(name.split(".")[1]) < 9 for name in others)
    assert not others & {*best(known["induction"], 15), *best(known["previous"], 10)}


def test_induction_and_previous_token_heads_carry_repetition_and_others_do_not():
    found = ablation()
    none, one, five, previous, first, *others = found.repeated
    assert 2 < none < 3.5
    assert one > none + 1.5 and five > none + 6 and previous > none + 4 and five > one
    assert abs(first - none) < 0.5 and all(-0.5 < other - none < 2.5 for other in others)
    assert 3.5 < found.text[0] < 4.5 and np.abs(found.text - found.text[0]).max() < 0.3


def test_bank_is_one_vector_before_the_layers_and_eight_after():
    sentences, senses, vectors = bank_senses()
    assert vectors.shape == (8, 7, 384) and len(sentences) == len(senses) == 8
    assert all("bank" in sentence for sentence in sentences)
    assert senses == ("money",) * 4 + ("river",) * 4
    assert len(np.unique(vectors[:, 0], axis=0)) == 1
    assert all(len(np.unique(vectors[:, layer], axis=0)) == 8 for layer in range(1, 7))


def test_the_first_bank_sentence_is_the_one_of_the_states():
    at = minilm_head("0.2", "money").tokens.index("bank")
    assert np.array_equal(bank_senses().vectors[0, :5], minilm_states("money")[:, at])


def test_the_padded_batch_is_the_one_the_model_saw():
    batch = padded_batch()
    assert batch.lengths == (8, 16) and batch.X.shape == (2, 16, 384)
    assert batch.tokens[0][:8] == minilm_head("0.2", "attention").tokens and set(batch.tokens[0][8:]) == {"[PAD]"}
    assert batch.tokens[1] == minilm_head("0.2", "suitcase").tokens
    assert np.array_equal(batch.X[0, :8], minilm_states("attention")[0])
    assert np.array_equal(batch.X[1], minilm_states("suitcase")[0])
    for head in ("0.2", "0.8"):
        found = minilm_head(head, "attention")
        parts = ((found.W_Q, found.b_Q), (found.W_K, found.b_K), (found.W_V, found.b_V))
        weights = scaled_dot_product_attention(*(batch.X[0] @ W + b for W, b in parts))[1]
        assert np.abs(weights - batch.unmasked[0, int(head[2:])]).max() < 1e-3


def test_padding_without_a_mask_moves_the_mean_vector():
    batch = padded_batch()

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    assert cosine(batch.alone, batch.with_mask) > 1 - 1e-6
    assert 0.8 < cosine(batch.alone, batch.without_mask) < 0.9
    assert np.allclose(batch.unmasked.sum(axis=-1), 1, atol=2e-3)


@pytest.mark.parametrize("name", RELATIONS)
def test_a_relation_counts_words_from_the_asking_one(name):
    relation = word_relation(name)
    assert relation.partner.shape == relation.looks.shape
    assert (relation.partner != 0).all() and (relation.looks != 0).all()
    assert relation.back.shape == relation.partner.shape


@pytest.mark.parametrize(
    ("name", "head", "pairs", "low", "high"),
    [
        ("object to verb", "2.0", 162, 0.2, 0.4),
        ("preposition to object", "2.8", 252, 0.2, 0.4),
        ("verb to far subject", "5.5", 60, -0.4, -0.2),
    ],
)
def test_a_head_finds_its_relation_better_than_one_distance_and_far_subjects_worse(name, head, pairs, low, high):
    relation = word_relation(name)
    assert relation.head == head and len(relation.partner) == pairs
    distances, counts = np.unique(relation.partner, return_counts=True)
    assert low < (relation.looks == relation.partner).mean() - counts.max() / pairs < high


def test_far_subjects_are_far_and_mostly_to_the_left():
    partner = word_relation("verb to far subject").partner
    assert np.abs(partner).min() == 3 and 0.8 < (partner < 0).mean() < 1


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (lambda: minilm_head("9.9"), "head is '9.9', but must be one of '0.2', '0.8'"),
        (lambda: minilm_head(2.0), "head is 2.0, but must be one of"),
        (lambda: minilm_head("2.0", "gift"), "sentence is 'gift', but must be one of 'suitcase'"),
        (lambda: minilm_states(None), "sentence is None"),
        (lambda: smollm2_head("2.0"), "head is '2.0', but must be one of '1.2'"),
        (lambda: smollm2_head("16.0", "money"), "text is 'money', but must be one of 'gift'"),
        (lambda: minilm_maps("gift"), "sentence is 'gift', but must be one of 'suitcase'"),
        (lambda: minilm_maps("river wide"), "'attention', 'suitcase small', 'animal wide'"),
        (lambda: minilm_layer("suitcase small"), "sentence is 'suitcase small', but must be one of 'suitcase'"),
        (lambda: smollm2_maps("money"), "text is 'money', but must be one of 'gift'"),
        (lambda: head_survey("minilm"), "model is 'minilm', but must be one of 'MiniLM', 'SmolLM2'"),
        (lambda: head_survey(None), "model is None"),
        (lambda: word_relation("verb to object"), "name is 'verb to object', but must be one of 'object to verb'"),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_those_that_are(call, reason):
    with pytest.raises(ValueError) as error:
        call()
    assert reason in str(error.value)


@pytest.mark.parametrize(
    "load",
    [
        lambda: minilm_head().W_Q,
        lambda: minilm_head().X,
        lambda: minilm_head().reference,
        minilm_states,
        lambda: smollm2_head().Q,
        lambda: smollm2_head().reference,
        lambda: bank_senses().vectors,
        lambda: padded_batch().X,
        lambda: padded_batch().unmasked,
        lambda: word_relation().looks,
        lambda: minilm_maps().weights,
        lambda: smollm2_maps().weights,
        lambda: minilm_layer().W_O,
        lambda: minilm_layer().b_Q,
        lambda: minilm_layer().reference,
        lambda: head_survey()["entropy"],
        lambda: ablation().repeated,
    ],
)
def test_what_is_given_is_a_new_array_each_time(load):
    before = load().copy()
    load()[:] = 0
    assert np.array_equal(load(), before)


def test_no_data_file_is_larger_than_it_may_be():
    sizes = {file.name: file.stat().st_size for file in (PACKAGE / "data").iterdir()}
    assert max(sizes.values()) <= 1_400_000
    assert sum(sizes.values()) <= 3_950_000


def test_importing_reads_no_data_and_using_it_does(facts):
    assert facts["data"] == []
    assert facts["shape"] == [2, 50]
    assert [Path(name).name for name in facts["data_later"]] == ["glove50.npz"]


@pytest.mark.parametrize("what", ["settings", "random_state", "errors"])
def test_importing_changes_no_setting_of_numpy_or_matplotlib(facts, what):
    assert facts[what]


def test_importing_starts_no_thread_and_no_pyplot(facts):
    assert facts["threads"] == 0
    assert not facts["pyplot"]


def test_neither_importing_nor_loading_touches_the_network(facts):
    assert facts["sockets"] == []


def test_the_package_works_from_a_folder_that_cannot_be_written(tmp_path):
    # an administrator may write anywhere, so the files are compared as well
    home = tmp_path / "installed"
    shutil.copytree(PACKAGE, home / "attn_helpers", ignore=shutil.ignore_patterns("__pycache__"))
    before = {path: path.stat().st_mtime_ns for path in home.rglob("*")}
    for path in [home, *before]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        facts = watched_import(home, home)
    finally:
        for path in [home, *before]:
            path.chmod(0o755)
    assert Path(facts["file"]).parent == home / "attn_helpers"
    assert facts["shape"] == [2, 50]
    assert {path: path.stat().st_mtime_ns for path in home.rglob("*")} == before


def test_the_data_is_what_its_readme_says():
    folder = PACKAGE / "data"
    lines = (folder / "README.md").read_text(encoding="utf-8").splitlines()
    stated = dict(line.split()[::-1] for line in lines if re.fullmatch(r" {4}[0-9a-f]{64}  \S+", line))
    files = [file for file in folder.iterdir() if file.name.endswith(".npz")]
    assert stated == {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
