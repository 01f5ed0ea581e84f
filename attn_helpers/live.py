"""A picture driven by sliders: one figure, changed in place, never a second one.

JupyterLab may call a slider's callback on a thread beside the running cell, and matplotlib
must not be used on two threads at once. So a callback here only asks the kernel's main
thread to draw, and many moves in a row become one drawing of the newest values.
"""

import asyncio
import html
import threading

import ipywidgets as widgets

from attn_helpers.picture import encode, mimebundle

RED = "#B00020"
BORDER = 3  # pixels; always there, so that an error moves nothing


class Live(widgets.VBox):
    """Sliders above a picture, and its numbers as text below.

    picture   a Picture that can move (see moving.py)
    compute   compute(**values of the controls) -> the arguments of picture.show
    controls  name=widget with a value, in the order of the page

    error holds the exception of the last drawing, or None. While there is one, it stands in
    red above the picture, which keeps a red border because it shows older values.
    """

    def __init__(self, picture, compute, **controls):
        self.picture, self.compute, self.controls, self.error = picture, compute, controls, None
        self._loop, self._queued = _running_loop(), False
        width = f"{picture.get_figwidth() * 100 + 2 * BORDER:.0f}px"
        self._image = widgets.Image(format="png", layout=widgets.Layout(width=width, max_width="100%"))
        self._text, self._message = widgets.HTML(), widgets.HTML()
        super().__init__([*controls.values(), self._message, self._image, self._text])
        self.draw(**self.values)
        self._freeze()
        self._render()
        for control in controls.values():
            control.observe(self._on_change, "value")
            quiet(control)

    @property
    def values(self):
        """The value of each control, by name."""
        return {name: control.value for name, control in self.controls.items()}

    def draw(self, **values):
        """Bring the figure's artists to these values and return the text summary; sets no slider."""
        self.picture.summary = self.picture.show(**self.compute(**values))
        return self.picture.summary

    def _freeze(self):
        """Fix the layout that the first values decided and keep what never moves as pixels."""
        canvas = self.picture.canvas
        canvas.draw()
        self.picture.set_layout_engine("none")
        spines = [spine for ax in self.picture.axes for spine in ax.spines.values()]
        self._moving = sorted([*self.picture.moving, *spines], key=lambda artist: artist.get_zorder())
        for artist in self._moving:
            artist.set_animated(True)
        canvas.draw()
        self._still = canvas.copy_from_bbox(self.picture.bbox)

    def _on_change(self, _change):
        if self._loop is None or threading.current_thread() is threading.main_thread():
            self._render()
        elif not self._queued:
            self._queued = True
            self._loop.call_soon_threadsafe(self._render)

    def _render(self):
        self._queued = False
        try:
            self.draw(**self.values)
            self._image.value = self._blit()
        except BaseException as error:  # shown to the reader: a lost traceback teaches nothing
            self._report(error)
            if not isinstance(error, Exception):  # Ctrl-C: the picture is stale, and the cell must stop
                raise
        else:
            self._report(None)

    def _blit(self):
        canvas = self.picture.canvas
        canvas.restore_region(self._still)
        for artist in self._moving:
            artist.draw(canvas.get_renderer())
        return encode(canvas)

    def _report(self, error):
        self.error = error
        self._image.layout.border = f"{BORDER}px solid {RED if error else 'transparent'}"
        if error:
            text = f"{type(error).__name__}: {error}\nat {self.values}; the picture still shows older values"
            self._message.value = pre(text, "alert", RED)
        else:
            self._message.value = ""
            self._text.value = pre(self.picture.summary, "status", "inherit")

    def __repr__(self):
        return self.picture.summary

    def _repr_mimebundle_(self, **kwargs):
        """The live view, and for a page without a kernel the picture and its numbers."""
        still, metadata = mimebundle(self.picture)
        return {**(super()._repr_mimebundle_(**kwargs) or {}), **still}, metadata


def quiet(control):
    """Keep a control's messages from firing IPython's post_execute on a thread beside a running cell.

    On that event matplotlib-inline draws and closes the figures that the cell has not finished.
    """
    if hasattr(control.comm, "handle_msg"):
        control.comm.handle_msg = control._handle_msg


def pre(text, role, color):
    """Write text as HTML that keeps its lines and breaks between words; role is what a screen reader is told."""
    style = f"color:{color};white-space:pre-wrap;word-break:normal;overflow-wrap:break-word"
    return f'<pre role="{role}" style="{style}">{html.escape(text)}</pre>'


def _running_loop():
    try:
        return asyncio.get_running_loop()
    except RuntimeError:  # a script or a test: there is no kernel
        return None
