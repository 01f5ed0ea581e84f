"""What strict nbval does not look at. Nothing is executed here but the folded solutions."""

import ast
import contextlib
import io
import os
import re
import statistics
import sys
from pathlib import Path

import nbformat
import numpy as np
import pytest

import attn_helpers
import notebooks as tool

ROOT = Path(__file__).resolve().parents[1]
PATHS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ALLOWED_TAGS = {"raises-exception", "nbval-ignore-output"}
FORBIDDEN = {
    r"^\s*#\s*(NBVAL_|PYTEST_VALIDATE_)": "a comment that switches the check off",
    r"^\s*%": "a magic",
    r";\s*(#.*)?$": "a trailing semicolon (nbval ignores it)",
    r"\binteract\b|\binteractive(_output)?\b|\bOutput\(|clear_output|display_id": "a widget that nbval cannot replay",
    r"pyplot": "pyplot",
}
UNSTEADY = (
    r"0x[0-9a-f]{6,}|/tmp/|ipykernel_|/home/|/Users/|np\.(float|int|bool)\d*_?\(|\d\.\d{7,}|(?<![\d.])-0\.0*(?![\d])"
)


@pytest.fixture(params=PATHS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return tool.read(path)


@pytest.fixture
def code(notebook):
    return tool.code_cells(notebook)


def test_the_series_is_complete():
    names = "expectation query_key_value self_attention matrix_form masks scaling_and_cost multi_head".split()
    assert [path.stem for path in PATHS] == [f"{i:02d}_{name}" for i, name in enumerate(names, 1)]


def test_the_notebook_check_is_on(pytestconfig):
    assert pytestconfig.option.nbval, "run pytest with the project's own options (--nbval)"
    assert pytestconfig.option.nbval_current_env


def test_the_file_is_valid_and_in_canonical_form(path, notebook):
    nbformat.validate(notebook)
    saved_by_the_tool = path.read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n"
    assert saved_by_the_tool, "changed since tools/notebooks.py saved it: `git stash` your own work, or run the tool"
    made_with = notebook.metadata.pop("pictures_made_with", {})
    assert set(made_with) == {"matplotlib", "pillow"}
    assert set(notebook.metadata) == {"kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    assert {cell.cell_type for cell in notebook.cells} == {"code", "markdown"}


def test_every_code_cell_was_run_once_in_order(code):
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert all(cell.source.strip() for cell in code)


def test_nothing_switches_the_check_off(code):
    for cell in code:
        assert set(cell.metadata) <= {"tags"}, cell.id
        assert set(cell.metadata.get("tags", [])) <= ALLOWED_TAGS, cell.id
        for pattern, what in FORBIDDEN.items():
            assert not re.search(pattern, cell.source, re.MULTILINE), f"{cell.id}: {what}"


def test_outputs_are_steady_and_clean(code):
    for cell in code:
        raised = False
        for output in cell.outputs:
            assert output.get("name") != "stderr", cell.id
            raised |= output.output_type == "error"
            data = output.get("data", {})
            assert tool.VIEW not in data, cell.id
            if "image/png" in data:
                assert data["text/plain"].strip(), f"{cell.id}: a picture without text"
            text = output.get("text", "") + data.get("text/plain", "")
            assert not re.search(UNSTEADY, text), f"{cell.id}: {re.search(UNSTEADY, text)}"
        assert raised == ("raises-exception" in cell.metadata.get("tags", [])), cell.id


def test_the_shape_is_that_of_a_lesson(notebook, code):
    lines = [len([line for line in cell.source.splitlines() if line.strip()]) for cell in code]
    assert 15 <= len(code) <= 35
    assert max(lines) <= 20
    assert max(len(line) for cell in code for line in cell.source.splitlines()) <= 92, "the page would cut it off"
    assert statistics.median(lines) <= 6
    kinds = "".join(cell.cell_type[0] for cell in notebook.cells)
    assert "ccc" not in kinds, "more than two code cells in a row"
    assert kinds.endswith("m")
    pictures = sum("image/png" in output.get("data", {}) for cell in code for output in cell.outputs)
    assert 3 <= pictures <= 8
    assert sum(bool(re.search(r"_explorer\(", cell.source)) for cell in code) >= 1
    assert any("predict(" in cell.source for cell in code)


def test_headings_make_an_outline(notebook):
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    levels = [len(mark) for mark in re.findall(r"^(#+) ", text, re.MULTILINE)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(levels, levels[1:]))


def test_links_between_the_files_resolve(path, notebook):
    for cell in notebook.cells:
        for target in re.findall(r"\]\(([^)#]+)", cell.source):
            assert target.startswith("https://") or (path.parent / target).exists(), f"{cell.id}: {target}"


def test_links_to_a_section_name_a_heading_there(path, notebook):
    for cell in notebook.cells:
        for file, section in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", cell.source):
            other = tool.read(path.parent / file) if file else notebook
            text = "\n".join(cell.source for cell in other.cells if cell.cell_type == "markdown")
            headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
            assert section in [heading.replace(" ", "-") for heading in headings], f"{cell.id}: {file}#{section}"


def test_every_exercise_has_a_folded_solution_that_its_check_accepts(notebook):
    exercises, scope = 0, {"np": np}
    for cell, following in zip(notebook.cells, notebook.cells[1:]):
        for exercise, name in re.findall(r"^check\.(\w+)\((\w+)\)", cell.source, re.MULTILINE):
            exercises += 1
            solution = re.search(r"<details>.*?```python\n(.*?)```\n</details>", following.source, re.DOTALL)
            assert solution, f"{cell.id}: no folded solution under it"
            exec(solution.group(1), scope)
            feedback = getattr(attn_helpers.check, exercise)(scope[name])
            assert feedback.correct is True, f"{cell.id}: {feedback}"
            stub = {"np": np}
            exec(cell.source.split("check.")[0], stub)
            assert getattr(attn_helpers.check, exercise)(stub[name]).correct is None
    assert 2 <= exercises <= 5


def test_each_cell_before_the_first_long_one_can_be_run_twice(code, monkeypatch):
    # a reader who runs a cell again sees the numbers that the text speaks of
    monkeypatch.setattr(os, "environ", dict(os.environ))
    scope = {}
    with np.printoptions():
        for cell in code:
            if "IntProgress" in cell.source:  # it takes long
                break
            first, second = outcome(cell.source, scope), outcome(cell.source, scope)
            assert first == second or "nbval-ignore-output" in cell.metadata.get("tags", []), cell.id


def outcome(source, scope):
    """Run a cell in this process: what it prints, and its last line's value as text."""
    *body, last = ast.parse(source).body
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(ast.Module(body, []), "cell", "exec"), scope)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), scope)
        else:
            exec(compile(ast.Module([last], []), "cell", "exec"), scope)
    return printed.getvalue(), getattr(value, "summary", repr(value))


def test_package_and_notebooks_import_nothing_but_what_the_requirements_bring():
    # cases 103, 104: the tests' own requirements would hide a package that is missing; nothing opens a connection
    brought = {"numpy", "matplotlib", "ipywidgets", "IPython", "PIL", "attn_helpers"}  # PIL comes with matplotlib
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "attn_helpers").rglob("*.py")]
    sources += ["\n".join(cell.source for cell in tool.code_cells(tool.read(path))) for path in PATHS]
    found = {name.split(".")[0] for source in sources for name in imported(ast.parse(source))}
    standard = found - brought
    assert standard <= sys.stdlib_module_names
    assert not standard & {"urllib", "http", "socket", "ssl", "ftplib", "subprocess", "ctypes"}


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


def test_the_readme_lists_exactly_the_notebooks():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert sorted(set(re.findall(r"notebooks/(\d\d_\w+\.ipynb)", readme))) == [path.name for path in PATHS]


def test_every_requirement_has_the_floor_of_the_package_and_stays_below_a_next_major():
    # case 100: JupyterLab and ipywidgets of majors that do not fit each other show nothing
    *lines, itself = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    assert itself == "-e ."
    floors = dict(re.fullmatch(r"(\w+)>=([\d.]+),<\d+", line).groups() for line in lines)
    assert {"jupyterlab", "ipywidgets", "nbval"} <= set(floors)
    package = dict(re.findall(r'"(\w+)>=([\d.]+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8")))
    package.pop("setuptools")
    assert package.items() <= floors.items()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda cell: cell.outputs[0].update(text=cell.outputs[0].text.replace("0.787", "0.788")),
        lambda cell: cell.outputs.clear(),
        lambda cell: cell.update(execution_count=None),
    ],
)
def test_a_stale_notebook_is_found_and_its_cell_named(spoil):
    fresh = tool.read(PATHS[0])
    saved = tool.read(PATHS[0])
    cell = next(cell for cell in tool.code_cells(saved) if cell.id == "misreading-code")
    assert tool.differences(saved, fresh) == []
    spoil(cell)
    found = tool.differences(saved, fresh)
    assert any(f"cell {cell.id}: " in line for line in found)


@pytest.mark.parametrize("cell", ["import os; os._exit(1)", "1 / 0"])
def test_a_notebook_that_cannot_run_is_told_and_the_next_one_runs(cell, tmp_path, capsys):
    paths = []
    for name, source in (("bad", cell), ("good", "1 + 1")):
        paths.append(tmp_path / f"{name}.ipynb")
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source, id="first")])
        nbformat.write(book, paths[-1])
    before = paths[0].read_bytes()
    assert tool.main([str(path) for path in paths]) == 1
    assert paths[0].read_bytes() == before
    told = capsys.readouterr().out
    assert f"{paths[0]}: a cell failed" in told and f"saved {paths[1]}" in told


def test_what_a_slow_cell_prints_in_pieces_is_saved_as_one():
    new = nbformat.v4
    pieces = [new.new_output("stream", name="stdout", text=text) for text in ("a\n", "b\n")]
    picture = new.new_output("display_data", data={"text/plain": "p"})
    cell = new.new_code_cell("x", outputs=[*pieces, picture, new.new_output("stream", name="stdout", text="c\n")])
    (saved,) = tool.code_cells(tool.canonical(new.new_notebook(cells=[cell])))
    assert [output.get("text") for output in saved.outputs] == ["a\nb\n", None, "c\n"]


def test_a_changed_picture_is_found_and_its_cell_named():
    fresh, saved = tool.read(PATHS[0]), tool.read(PATHS[0])
    first, second = (cell for cell in tool.code_cells(saved) if cell.id in ("temperature-panels", "relevance-code"))
    first.outputs[0].data["image/png"] = second.outputs[0].data["image/png"]
    assert any(line.startswith(f"cell {first.id}: the picture differs") for line in tool.differences(saved, fresh))
