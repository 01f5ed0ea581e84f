"""Strict nbval, pictures included."""

import matplotlib
import matplotlib.font_manager  # lists the fonts once, if need be: a kernel that takes long over it writes a warning
import nbformat
import PIL
import pytest


def pytest_configure(config):
    """Refuse the options that would make the notebook check pass without comparing."""
    if getattr(config.option, "nbval_lax", False) or getattr(config.option, "nbval_sanitize_with", None):
        raise pytest.UsageError("the notebooks are compared strictly: no --nbval-lax, no sanitize file")


def pytest_collectstart(collector):
    """Let nbval compare PNG bytes, which it skips, where the libraries are those that made them."""
    if not hasattr(collector, "skip_compare"):
        return
    made_with = nbformat.read(collector.path, as_version=4).metadata.get("pictures_made_with", {})
    if made_with == {"matplotlib": matplotlib.__version__, "pillow": PIL.__version__}:
        collector.skip_compare = tuple(key for key in collector.skip_compare if key != "image/png")
