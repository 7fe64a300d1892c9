"""Sphinx settings: `make docs`, or `sphinx-build -q -W --keep-going docs docs/_build`. Nothing is downloaded."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_ext"))

from haptera import __version__

project = "haptera"
author = "the haptera authors"
copyright = author
release = version = __version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "live", "older", "root_pages"]
exclude_patterns = ["_build", "jupyter_execute", "evidence/results/*.md"]  # those are parts of pages
myst_heading_anchors = 3
nb_execution_mode = "off"  # notebooks show what `make notebooks` stored in them, and CI runs them again
default_role = "code"  # docstrings write `code` with single backticks
suppress_warnings = ["config.cache"]

autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_typehints_format = "short"
autodoc_typehints_description_target = "documented_params"
napoleon_use_ivar = True

html_theme = "furo"
html_title = f"haptera {__version__}"
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("pictures.js", {"defer": "defer"})]


def setup(app):
    """Copy pictures that pages show by HTML, light or dark, which Sphinx does not see."""
    import shutil

    def copy(app, exception):
        if exception is None and app.builder.format == "html":
            shutil.copytree(Path(app.srcdir) / "pictures", Path(app.outdir) / "pictures", dirs_exist_ok=True)

    app.connect("build-finished", copy)
