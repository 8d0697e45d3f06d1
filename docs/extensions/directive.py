"""Sphinx's side of the reference: the directive `entries`."""

from __future__ import annotations

from docutils import nodes
from entries import entries, listed, markdown
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Entries(SphinxDirective):
    """The entries of the modules and names in its content, one after the other."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        text = "\n".join(map(markdown, listed(" ".join(self.content).split(), entries())))
        return self.parse_text_to_nodes(text, offset=self.content_offset)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive."""
    app.add_directive("entries", Entries)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
