"""Run the tests on every Python that the project supports, and on the oldest packages it allows.

    pip install nox && nox -f tools/noxfile.py                    (each Python must be on the PATH)
    nox -f tools/noxfile.py -s floors

Browser tests are left out: .ci/run has them.
"""

import re
from pathlib import Path

import nox

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ["3.10", "3.11", "3.12", "3.13"]


@nox.session(python=PYTHONS)
def newest(session):
    """Each Python with its newest packages."""
    _test(session, "-r", "requirements.txt")


@nox.session(python=PYTHONS[:1])
def floors(session):
    """The oldest Python with the oldest package of each requirement."""
    oldest = re.sub(r">=([\d.]+),.*", r"~=\1.0", (ROOT / "requirements.txt").read_text(encoding="utf-8"))
    _test(session, *oldest.replace("-e .", "").split(), "-e", ".")


def _test(session, *packages):
    session.chdir(ROOT)
    session.install(*packages, "-r", "tests/requirements.txt")
    session.run("pytest", "--ignore=tests/test_browser.py", "-p", "no:cacheprovider")
