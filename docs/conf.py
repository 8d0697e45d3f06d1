"""The site: `sphinx-build -W -b html docs FOLDER` builds it, without a network."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "docs" / "extensions"), str(ROOT / "examples")]

from blocknumba import __version__  # noqa: E402  the path is set above

project = "blocknumba"
author = copyright = "the blocknumba developers"
release = version = __version__

extensions = ["myst_parser", "sphinx_gallery.gen_gallery", "directive", "outside"]
root_doc = "index"
# README.md is the map for those who read the folder; `extensions` is no page
exclude_patterns = ["README.md", "extensions", "static", "_build", "**/sg_execution_times.rst"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
# blocks of text, and of tile IR
highlight_language = "none"
suppress_warnings = ["config.cache"]

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples" / "tutorial"), str(ROOT / "examples" / "gallery")],
    "gallery_dirs": ["tutorial", "gallery"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "abort_on_example_error": True,
    "remove_config_comments": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "blocknumba"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_toc_level": 2,
    "header_links_before_dropdown": 7,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_context = {"default_mode": "auto"}
