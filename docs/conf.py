"""Settings of the documentation site, which `make docs` builds."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_site"))

import isometry

project = "Isometry"
release = version = isometry.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton", "sphinx_design"]
extensions += ["docstrings", "mathml"]  # of docs/_site
nitpicky = True
nitpick_ignore_regex = [("py:obj", r"\w+")]  # numpydoc links attributes, which have no entries of their own
default_role = "literal"  # names in docstrings
highlight_language = "text"
smartquotes = False  # a quoted word is a Python string

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 4

autodoc_typehints = "none"  # the docstrings say more
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

#: The pages below docs/README.md's first heading.
GUIDES = re.findall(r"\]\(([\w-]+)\.md\)", (Path(__file__).parent / "README.md").read_text().split("\n## ")[1])

html_theme = "furo"
html_theme_options = {"announcement": "the bar of _templates/page.html"}
templates_path = ["_templates"]
html_logo = html_favicon = "_static/logo.svg"
html_context = {
    "repository": "https://github.com/isometry-ml/isometry",
    "description": "Orthogonal and unitary matrices for PyTorch and NumPy: weights that stay orthogonal while they are "
    "trained, rotations by the million, recurrent networks with memory.",
    #: Name, page, and the pages or folders of the section.
    "sections": [
        ("Start", "index", ("index", "install", "tutorial", "faq", "not-learning", "limits")),
        ("Which layer?", "choosing", ("choosing",)),
        ("Examples", "examples", ("examples",)),
        ("Guides", "README", ("README", *GUIDES)),
        ("Reference", "reference/index", ("reference/", "api/")),
        ("Mathematics", "math/README", ("math/",)),
        ("What was measured", "reproduction", ("reproduction", "reproduction/", "speed", "numerics", "reliability")),
    ],
}
html_title = f"Isometry {release}"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "_site/scorer.js")
html_copy_source = False
html_show_copyright = False
html_show_sourcelink = False
