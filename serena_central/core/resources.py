"""Finds the folders of data files, in a wheel as in a checkout.

Resolved from this file's own place: an editable install may leave stale copies of force-included folders elsewhere.
"""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def migrations_folder() -> Path:
    """The Alembic folder (env.py, versions/)."""
    return _folder("migrations", "_migrations")


def dashboard_folder() -> Path:
    """What the dashboard's pages are made of (templates/, static/)."""
    return _folder("dashboard", "_dashboard")


def _folder(in_checkout: str, in_wheel: str) -> Path:
    checkout = _PACKAGE.parent / in_checkout
    # A checkout has pyproject.toml beside the package; site-packages has not.
    if checkout.is_dir() and (_PACKAGE.parent / "pyproject.toml").is_file():
        return checkout
    return _PACKAGE / in_wheel
