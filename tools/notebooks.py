"""Run every notebook in a fresh kernel and save it in one canonical form.

    python tools/notebooks.py [--check] [notebook ...]

With --check nothing is changed, and the exit code is 1 where a saved notebook is not what a
fresh run gives: text exactly, pictures pixel by pixel. Under another matplotlib than the one
the pictures were made with, pictures may differ a little (TOLERANCE).
"""

import argparse
import base64
import collections
import copy
import difflib
import io
import json
import sys
from pathlib import Path

import matplotlib
import matplotlib.font_manager  # lists the fonts once, if need be: a kernel that takes long over it writes a warning
import nbformat
import numpy as np
import PIL.Image
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

ROOT = Path(__file__).resolve().parents[1]
VIEW = "application/vnd.jupyter.widget-view+json"  # names a widget of a kernel that is gone
TOLERANCE = 4.0  # mean difference of the pixels, of 255
MESSAGES = 500  # of one cell; a kernel's socket drops what is beyond about 1000 unread ones


def main(arguments=None):
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change nothing, compare with a fresh run")
    parser.add_argument("notebook", nargs="*", type=Path)
    options = parser.parse_args(arguments)
    paths = options.notebook or sorted((ROOT / "notebooks").glob("*.ipynb"))
    if not paths:
        parser.error("there are no notebooks")
    failed = 0
    for path in paths:
        try:
            fresh = run(path)
        except (CellExecutionError, CellTimeoutError, DeadKernelError, TooManyMessages) as error:
            print(f"{path}: a cell failed\n{error}")
            failed += 1
            continue
        if not options.check:
            path.write_text(nbformat.writes(fresh) + "\n", encoding="utf-8", newline="\n")
            print("saved", path)
            continue
        found = differences(read(path), fresh)
        print("\n".join(f"{path}: {line}" for line in found) or f"fresh {path}")
        failed += bool(found)
    return int(failed > 0)


def read(path):
    """Read a notebook as it was saved."""
    return nbformat.read(path, as_version=4)


def run(path):
    """Run a notebook in a fresh kernel, in its own folder; returns it in canonical form."""
    notebook = read(path)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    resources = {"metadata": {"path": str(path.resolve().parent)}}
    waits = {"timeout": 600, "iopub_timeout": 60, "raise_on_iopub_timeout": True}  # seconds, for a busy machine
    options = {"kernel_name": "python3", "record_timing": False, "store_widget_state": False, "resources": resources}
    client = CountingClient(notebook, **options, **waits)
    client.execute()
    for index, sent in sorted(client.sent.items()):
        if sent > MESSAGES:
            raise TooManyMessages(f"cell {notebook.cells[index].id} sent {sent} messages, more than {MESSAGES}")
    return canonical(notebook)


class TooManyMessages(RuntimeError):
    """A cell sends so many messages that a reader's Jupyter may lose some, the last one included."""


class CountingClient(NotebookClient):
    """A client that counts the messages of each cell's run: output, and changes of widgets."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.sent = collections.Counter()

    def process_message(self, message, cell, index):
        self.sent[index] += 1
        return super().process_message(message, cell, index)


def canonical(notebook):
    """Drop what differs from run to run or dies with the kernel."""
    notebook.metadata = nbformat.from_dict(
        {
            "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
            "pictures_made_with": {"matplotlib": matplotlib.__version__, "pillow": PIL.__version__},
        }
    )
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({key: cell.metadata[key] for key in ("tags",) if key in cell.metadata})
    for cell in code_cells(notebook):
        cell.outputs = _joined(cell.outputs)
        for output in cell.outputs:
            output.pop("transient", None)
            output.get("data", {}).pop(VIEW, None)
            if output.output_type == "error":
                output.traceback = [f"{output.ename}: {output.evalue}"]
    return notebook


def differences(saved, fresh):
    """Lines that say where a saved notebook is not the fresh run; each names its cell."""
    found = []
    if _frame(saved) != _frame(fresh):
        found.append("cells, sources or metadata are not in canonical form")
    exact = saved.metadata.get("pictures_made_with", {}).get("matplotlib") == matplotlib.__version__
    for old, new in zip(code_cells(saved), code_cells(fresh)):
        if old.execution_count != new.execution_count:
            found.append(
                f"cell {new.id}: saved as run number {old.execution_count}, but it is number {new.execution_count}"
            )
        (old_text, old_pictures), (new_text, new_pictures) = _split(old), _split(new)
        lines = difflib.unified_diff(old_text, new_text, "saved", "fresh run", lineterm="", n=1)
        found += [f"cell {new.id}: {line}" for line in lines]
        for before, after in zip(old_pictures, new_pictures):
            change = pixel_change(before, after)
            if change > (0 if exact else TOLERANCE):
                found.append(f"cell {new.id}: the picture differs, by {change:.3f} of 255 in the mean")
    return found


def pixel_change(before, after):
    """Mean absolute difference of two PNGs' pixels, 0 to 255; infinite where the sizes differ."""
    a, b = (np.asarray(PIL.Image.open(io.BytesIO(png)).convert("RGB"), dtype=float) for png in (before, after))
    return np.inf if a.shape != b.shape else float(np.abs(a - b).mean())


def code_cells(notebook):
    """The code cells, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def _joined(outputs):
    """The outputs with pieces of one stream put together: a slow cell prints in as many pieces as time decides."""
    joined = []
    for output in outputs:
        if joined and output.output_type == "stream" and output.name == joined[-1].get("name"):
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def _frame(notebook):
    """All of a notebook but its outputs and the versions its pictures were made with."""
    metadata = {key: value for key, value in notebook.metadata.items() if key != "pictures_made_with"}
    cells = [{key: value for key, value in cell.items() if key != "outputs"} for cell in notebook.cells]
    return metadata, cells


def _split(cell):
    """(the outputs as lines of text without pictures, the pictures as PNG bytes)."""
    if "nbval-ignore-output" in cell.metadata.get("tags", []):
        return [], []
    outputs, pictures = copy.deepcopy(cell.outputs), []
    for output in outputs:
        data = output.get("data", {})
        if "image/png" in data:
            pictures.append(base64.b64decode(data["image/png"]))
            data["image/png"] = "picture"
    return json.dumps(outputs, indent=1, sort_keys=True).replace("\\n", "\n").splitlines(), pictures


if __name__ == "__main__":
    sys.exit(main())
