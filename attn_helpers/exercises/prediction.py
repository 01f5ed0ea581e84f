"""predict(): a question before the run, answered after the guess."""

import html

import ipywidgets as widgets

from attn_helpers.live import RED, quiet


class Prediction(widgets.VBox):
    """A question with options; the recorded guess is compared with the computed answer."""

    def __init__(self, question, options, answer):
        self._question, self._options, self._answer, self.guess = question, list(options), answer, None
        self._radio = widgets.RadioButtons(options=self._options, value=None, layout={"width": "max-content"})
        self._button = widgets.Button(description="This is my guess")
        self._reply = widgets.HTML()
        heading = widgets.HTML(f"<b>{html.escape(question)}</b>")
        super().__init__([heading, self._radio, self._button, self._reply])
        self._button.on_click(self._on_click)
        for control in (self._radio, self._button):
            quiet(control)

    def _on_click(self, _button):
        if self._radio.value is None:
            self._say("Choose an option first.", RED)
        elif self.guess is None:  # only the first guess counts
            reply = self._compare(self._radio.value)  # first of all: Ctrl-C here leaves the question open
            self.guess, self._radio.disabled, self._button.disabled = self._radio.value, True, True
            self._say(*reply)

    def _compare(self, guess):
        """The reply to a guess, and its colour."""
        try:
            right = self._answer()
            if right not in self._options:
                raise ValueError(f"the computed answer {right!r} is not one of the options {self._options}")
            return f"Your guess: {guess}. Computed: {right}.", "inherit"
        except Exception as error:  # shown to the reader, as in live.py
            return f"{type(error).__name__}: {error}", RED

    def _say(self, text, color):
        self._reply.value = f'<div role="status" style="color:{color}">{html.escape(text)}</div>'

    def __repr__(self):
        return "\n".join([self._question, *(f"( ) {option}" for option in self._options)])

    def _repr_mimebundle_(self, **kwargs):
        return {**(super()._repr_mimebundle_(**kwargs) or {}), "text/plain": repr(self)}


def predict(question, options, answer):
    """Ask for a guess before the run; the answer is computed only when one was made.

    question  text; options a list of strings; answer a function without arguments that
              returns the right option
    returns   a widget, to stand on the last line of a cell
    """
    return Prediction(question, options, answer)
