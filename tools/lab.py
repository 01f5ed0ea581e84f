"""JupyterLab in a headless browser, for the browser tests and the benchmark.

    with lab.running() as session, session.open("notebooks/01_expectation.ipynb") as notebook:
        notebook.run_all()
        notebook.panels[0].sliders[0].press("ArrowRight")

The server has folders, settings and a token of its own and works on copies of the notebooks.
"""

import base64
import contextlib
import json
import math
import os
import re
import secrets
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import nbformat
import psutil

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    r"C:\Program Files\Google\Chrome\Application\chrome.exe",
)
BROWSER_OPTIONS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SETTINGS = {
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True},
    "notebook-extension/tracker": {"windowingMode": "none", "scrollPastEnd": False},
}
SIZE = {"width": 1300, "height": 1000}
OUTSIDE = re.compile(r"^(?!(https?|wss?)://127\.0\.0\.1[:/]|data:|blob:|about:)")
PANEL = ".widget-vbox:has(> img.widget-image)"  # what attn_helpers.live.Live becomes on the page
PREDICTION = ".widget-vbox:has(> .widget-radio)"
HANDLE = ".noUi-handle"
FRAME = ".jp-NotebookPanel .jp-WindowedPanel-outer"


def missing():
    """Say why no browser can be driven here, or return ""."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed: pip install -r tests/requirements.txt"
    return "" if find_browser() else "no Chromium or Chrome was found"


def find_browser():
    """Return the path of a Chromium or Chrome, the system's before playwright's own, or None."""
    for name in BROWSERS:
        if path := shutil.which(name):
            return path
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        own = playwright.chromium.executable_path
    return own if Path(own).exists() else None


@contextlib.contextmanager
def running():
    """Start a JupyterLab server and a browser, yield a Session, and close both with every kernel."""
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        _server(Path(folder)) as server,
        _browser() as context,
    ):
        yield Session(server, context)


class Session:
    """A running JupyterLab that opens copies of notebooks."""

    def __init__(self, server, context):
        self.server, self.folder, self.context = server, Path(server["root_dir"]), context

    def open(self, path):
        """Open a copy of a notebook file, with its outputs but as one that has not run."""
        book = nbformat.read(path, as_version=4)
        for cell in book.cells:
            if cell.cell_type == "code":
                cell.execution_count = None
        return self._open(book, Path(path).name)

    def open_cells(self, *sources):
        """Open a new notebook with these code cells."""
        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        return self._open(book, f"cells-{secrets.token_hex(4)}.ipynb")

    @contextlib.contextmanager
    def _open(self, book, name):
        nbformat.write(book, self.folder / name)
        page = self.context.new_page()
        notebook = Notebook(page)
        try:
            page.goto(f"{self.server['url']}lab/tree/{name}?reset&token={self.server['token']}")
            notebook.wait_for_kernel()
            yield notebook
        finally:
            notebook.close()


class Notebook:
    """A notebook on a page of JupyterLab.

    problems  what the page wrote to the console as an error, and exceptions of its scripts
    outside   addresses beyond this machine that the page asked for (and did not get)
    """

    def __init__(self, page):
        self.page, self.problems, self.outside = page, [], []
        page.on("console", lambda message: self.problems.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("request", lambda request: self._note_address(request.url))
        page.on("websocket", lambda socket: self._note_address(socket.url))

    def wait_for_kernel(self, seconds=60):
        """Wait until the page is there and its kernel idle; forget what JupyterLab itself complained about."""
        ready = "() => window.jupyterapp?.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"
        self.page.wait_for_function(ready, timeout=seconds * 1000)
        self.problems.clear()

    def run_all(self, seconds=600):
        """Run all cells and wait until they are done and their widgets are on the page."""
        self._start("notebook:run-all-cells")
        self.wait_for_run(seconds)

    def run(self, index, seconds=600):
        """Run one cell and wait for it."""
        self.start(index)
        self.wait_for_run(seconds)

    def start(self, index):
        """Run one cell without waiting."""
        self._start("notebook:run-cell", index)

    def wait_for_run(self, seconds=600):
        """Wait until what was started is done and its widgets are on the page."""
        self.page.wait_for_function("() => window.labRun !== 'busy'", timeout=seconds * 1000)
        self.page.wait_for_function(_WIDGETS_SHOWN, timeout=120_000)

    def outputs(self, index):
        """Return the outputs of one cell as nbformat dictionaries."""
        return self._cells()[index]["outputs"]

    def not_run(self):
        """List the code cells that have not run."""
        code = [cell for cell in self._cells() if cell["cell_type"] == "code"]
        return [cell["source"] for cell in code if cell["source"].strip() and cell["execution_count"] is None]

    def errors(self):
        """List the exceptions that cells show, without those of cells tagged raises-exception."""
        return [
            f"{output['ename']}: {output['evalue']}"
            for cell in self._cells()
            if "raises-exception" not in cell["metadata"].get("tags", [])
            for output in cell.get("outputs", [])
            if output["output_type"] == "error"
        ]

    @property
    def panels(self):
        """The pictures with sliders, in the order of the page."""
        return [Panel(self.page, root) for root in self.page.locator(PANEL).all()]

    @property
    def predictions(self):
        """The questions with radio buttons, in the order of the page."""
        return [Prediction(self.page, root) for root in self.page.locator(PREDICTION).all()]

    def sliders_by_tab(self, most=500):
        """Press Tab from the first cell to the end of the notebook; list the sliders reached, by place on the page."""
        self.page.evaluate(_FOCUS_FIRST_CELL)
        reached = []
        for _ in range(most):
            self.page.keyboard.press("Tab")
            inside, slider = self.page.evaluate(_FOCUS, HANDLE)
            if slider >= 0:
                reached.append(slider)
            if not inside:
                break
        return reached

    def screenshots(self, folder, stem, height=2000):
        """Keep the whole notebook as pictures of a height that one can look at."""
        folder.mkdir(parents=True, exist_ok=True)
        self.page.set_viewport_size({**SIZE, "height": height})
        frame = self.page.locator(FRAME)
        whole, part = frame.evaluate("frame => [frame.scrollHeight, frame.clientHeight]")
        for i in range(math.ceil(whole / part)):
            frame.evaluate("(frame, top) => { frame.scrollTop = top }", i * part)
            self.page.wait_for_timeout(200)
            frame.screenshot(path=folder / f"{stem}-{i + 1}.png")
        self.page.set_viewport_size(SIZE)

    def close(self):
        """Shut the kernel down and close the page."""
        with contextlib.suppress(Exception):
            self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        self.page.close()

    def _start(self, command, index=None):
        self.page.evaluate(_START, [command, index])

    def _cells(self):
        return json.loads(self.page.evaluate(_CELLS))

    def _note_address(self, address):
        if OUTSIDE.match(address):
            self.outside.append(address)


class View(NamedTuple):
    """What a panel shows."""

    picture: bytes
    summary: str


class Panel:
    """A picture with sliders: a Live of attn_helpers."""

    def __init__(self, page, root):
        self.page, self.root, self.image = page, root, root.locator("> img.widget-image")

    @property
    def sliders(self):
        return [Slider(self.page, root) for root in self.root.locator(".widget-slider").all()]

    def view(self):
        """Read the picture's bytes and the summary."""
        picture = self.image.evaluate(_BYTES)
        return View(base64.b64decode(picture), _text(self.root.locator("pre[role=status]")))

    def alert(self):
        """Read the error message, or ""."""
        return _text(self.root.locator("pre[role=alert]"))

    def style(self, selector, name):
        """Read one computed CSS property of the first element that the selector finds in the panel."""
        script = "(element, name) => getComputedStyle(element).getPropertyValue(name)"
        return self.root.locator(selector).first.evaluate(script, name)

    def wait_for_other(self, view):
        """Wait until both the picture and the summary differ from those of a view; return the new view."""
        return self._wait(lambda new: new.picture != view.picture and new.summary != view.summary, "another view")

    def wait_for(self, view):
        """Wait until the panel shows just this picture and this summary."""
        return self._wait(lambda new: new == view, f"the view with the summary {view.summary!r}")

    def _wait(self, good, name):
        def shown():
            view = self.view()
            return view if good(view) else None

        return wait_until(self.page, shown, name)


class Slider:
    """One slider: its handle, name and numbers."""

    def __init__(self, page, root):
        self.page, self.root, self.handle = page, root, root.locator(HANDLE)

    @property
    def name(self):
        return _text(self.root.locator("label"))

    @property
    def readout(self):
        return _text(self.root.locator(".widget-readout"))

    @property
    def role(self):
        return self.handle.get_attribute("role")

    @property
    def value(self):
        """The position: the exponent of a logarithmic slider, the index of a selection."""
        return float(self.handle.get_attribute("aria-valuetext"))  # aria-valuenow has one decimal only

    @property
    def limits(self):
        return tuple(float(self.handle.get_attribute(f"aria-value{end}")) for end in ("min", "max"))

    @property
    def share(self):
        """How far along the handle is, from 0 to 1; about, because the limits have one decimal only."""
        low, high = self.limits
        return (self.value - low) / (high - low)

    def press(self, key):
        """Focus the handle and press a key."""
        self.handle.focus()
        self.page.keyboard.press(key)

    def drag(self, share):
        """Drag the handle with the mouse to a share of the slider's length."""
        left, width, y = self._grip()
        self.page.mouse.move(left + share * width, y, steps=12)
        self.page.mouse.up()

    def drag_about(self, seconds):
        """Drag the handle to and fro for a time, about 50 mouse moves a second, and let go between the ends."""
        left, width, y = self._grip()
        start = time.perf_counter()
        while (passed := time.perf_counter() - start) < seconds:
            self.page.mouse.move(left + width * (0.5 + 0.45 * math.sin(2.3 * passed)), y)
            self.page.wait_for_timeout(16)
        self.page.mouse.move(left + 0.6 * width, y, steps=3)
        self.page.mouse.up()

    def _grip(self):
        """Press the mouse on the handle; return the left end, the width and the height on the page of its track."""
        self.handle.scroll_into_view_if_needed()
        track, handle = self.root.locator(".noUi-target").bounding_box(), self.handle.bounding_box()
        y = handle["y"] + handle["height"] / 2
        self.page.mouse.move(handle["x"] + handle["width"] / 2, y)
        self.page.mouse.down()
        return track["x"], track["width"], y


class Prediction:
    """A question with radio buttons and a button that records the guess: predict() of attn_helpers."""

    def __init__(self, page, root):
        self.page, self.root = page, root
        self.options, self.button = root.locator("input[type=radio]"), root.locator("button")

    def guess(self, index):
        """Choose an option and record it, with the mouse."""
        self.options.nth(index).check()
        self.button.click()

    def guess_by_keyboard(self, index):
        """Choose an option with Space, go on with Tab to the button and press it with Enter."""
        self.options.nth(index).focus()
        self.page.keyboard.press("Space")
        for _ in range(index, self.options.count()):
            self.page.keyboard.press("Tab")
        self.page.keyboard.press("Enter")

    def reply(self):
        """Wait for the reply and return it."""
        return wait_until(self.page, lambda: _text(self.root.locator("[role=status]")), "the reply")


def wait_until(page, condition, name, seconds=60):
    """Return the first true result of condition(); raise TimeoutError when there is none in time."""
    end = time.perf_counter() + seconds
    while not (result := condition()):
        if time.perf_counter() > end:
            raise TimeoutError(f"waited {seconds} s for {name}")
        page.wait_for_timeout(25)
    return result


@contextlib.contextmanager
def _server(home):
    """Run JupyterLab under a home folder; yield what it says of itself: url, token, root_dir."""
    _write_settings(home)
    with open(home / "server.log", "w") as log:
        process = subprocess.Popen(_command(home), env=_environment(home), stdout=log, stderr=subprocess.STDOUT)
        try:
            yield _info(process, home)
        finally:
            _end(process)


def _command(home):
    notebooks = home / "notebooks"
    notebooks.mkdir()
    return [
        *(sys.executable, "-m", "jupyterlab"),
        *("--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={_free_port()}"),
        f"--ServerApp.root_dir={notebooks}",
        "--LabApp.expose_app_in_browser=True",
        "--LabApp.extension_manager=readonly",
    ]


def _free_port():
    """A port that was free a moment ago; the server takes another one if it no longer is."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _environment(home):
    """This environment without the user's own Jupyter, IPython and matplotlib settings."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("JUPYTER", "IPYTHON", "MPL"))}
    own = {"CONFIG_DIR": "config", "DATA_DIR": "data", "RUNTIME_DIR": "run"}
    folders = {f"JUPYTER_{key}": str(home / name) for key, name in own.items()}
    return {**kept, **folders, "IPYTHONDIR": str(home / "ipython"), "JUPYTER_TOKEN": secrets.token_hex(16)}


def _write_settings(home):
    for name, settings in SETTINGS.items():
        path = home / "config" / "lab" / "user-settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(settings))


def _info(process, home, seconds=60):
    """Wait for the file that the server writes once it listens, and read it."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end and process.poll() is None:
        for path in (home / "run").glob("jpserver-*.json"):
            with contextlib.suppress(json.JSONDecodeError):  # half written
                return json.loads(path.read_text())
        time.sleep(0.05)
    raise RuntimeError("JupyterLab did not start:\n" + (home / "server.log").read_text()[-2000:])


def _end(process):
    """Stop the server, which stops its kernels; kill what is left (kernels are not in its process group)."""
    family = []
    with contextlib.suppress(psutil.NoSuchProcess):
        family = psutil.Process(process.pid).children(recursive=True)
    process.terminate()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(15)
    _, alive = psutil.wait_procs(family, timeout=3)
    for survivor in alive:
        with contextlib.suppress(psutil.NoSuchProcess):
            survivor.kill()
    process.kill()
    process.wait()


@contextlib.contextmanager
def _browser():
    """Run the browser with this machine as its whole network; yield its context."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=list(BROWSER_OPTIONS))
        with contextlib.closing(browser):
            context = browser.new_context(viewport=SIZE)
            context.route(OUTSIDE, lambda route: route.abort())
            yield context


def _text(locator):
    """Read the text of the one element found, or "" where there is none."""
    return " ".join(locator.all_inner_texts()).strip()


_START = """([command, index]) => {
    const app = window.jupyterapp;
    if (index !== null) app.shell.currentWidget.content.activeCellIndex = index;
    window.labRun = 'busy';
    app.commands.execute(command).finally(() => { window.labRun = 'done' });
}"""
_CELLS = """() => JSON.stringify(
    [...window.jupyterapp.shell.currentWidget.content.model.cells].map(cell => cell.toJSON())
)"""
_WIDGETS_SHOWN = """() => {
    const cells = [...window.jupyterapp.shell.currentWidget.content.model.cells].map(cell => cell.toJSON());
    const outputs = cells.flatMap(cell => cell.outputs ?? []);
    const views = outputs.filter(output => 'application/vnd.jupyter.widget-view+json' in (output.data ?? {}));
    const pictures = [...document.querySelectorAll('img.widget-image')];
    return document.querySelectorAll('.jp-OutputArea-output > .jupyter-widgets').length >= views.length
        && pictures.every(picture => picture.complete && picture.naturalWidth);
}"""
_BYTES = """async image => {
    for (;;) {
        const source = image.src;
        try {
            const bytes = new Uint8Array(await (await fetch(source)).arrayBuffer());
            return btoa(bytes.reduce((text, byte) => text + String.fromCharCode(byte), ''));
        } catch (error) {
            if (image.src === source) throw error;  // otherwise: replaced while it was read
        }
    }
}"""
_FOCUS_FIRST_CELL = """() => {
    const app = window.jupyterapp;
    app.shell.currentWidget.content.activeCellIndex = 0;
    return app.commands.execute('notebook:enter-command-mode').then(() => null);
}"""
_FOCUS = """handles => [
    document.activeElement.closest('.jp-Notebook') !== null,
    [...document.querySelectorAll(handles)].indexOf(document.activeElement),
]"""
