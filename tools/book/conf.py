# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
"""Sphinx's configuration of the book. Pages stay where they are in the repository, and read the same there as in the book.

The table of contents is docs/index.md itself: a heading is a part, and each item of a list that is a link to a page is a
chapter. A page that no list names is an error, and so is a link or an anchor that leads nowhere.
"""

import re

project = "onramp"
html_title = "onramp"
root_doc = "docs/index"
extensions = ["myst_parser"]
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**/*.md", "docs/*.md", "figures/README.md"]
# Folders without pages, which Sphinx would walk through.
exclude_patterns = [
    ".cache", ".ci", ".git", ".github", "bench", "bpf", "crates", "deploy", "examples", "fuzz", "law", "python", "results",
    "scenarios", "target", "tests", "tools", "workloads",
]
nitpicky = True

# Pages are GitHub's Markdown, and have none of MyST's own syntax.
myst_disable_syntax = ["colon_fence", "myst_block_break", "myst_line_comment", "myst_role", "myst_target"]
myst_heading_anchors = 4
suppress_warnings = ["misc.highlighting_failure"]  # output of commands is no program

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["book.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_copyright = False

CHAPTER = re.compile(r"^- \[([^\]]*)\]\(([^)#]+)\.md\)", re.MULTILINE)


def contents(app, page, source):
    """Makes the lists of docs/index.md the navigation of the book."""
    if page != root_doc:
        return
    parts = re.split(r"^## ", source[0], flags=re.MULTILINE)
    for part in parts[1:]:
        chapters = [f"{title} <{page}>" for title, page in CHAPTER.findall(part)]
        title = part.splitlines()[0]
        source[0] += "\n```{toctree}\n:hidden:\n:caption: " + title + "\n\n" + "\n".join(chapters) + "\n```\n"


def setup(app):
    app.connect("source-read", contents)
