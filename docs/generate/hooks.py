"""Hooks of mkdocs: generated pages, and links that work on GitHub and on the site."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import api_reference
import cli_reference
import github_markdown
import notebooks
import repository
import rest_reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

GENERATED = {
    "reference/cli.md": cli_reference.write_page,
    "reference/rest-console.md": rest_reference.write_console_page,
    "reference/rest-serving.md": rest_reference.write_serving_page,
} | api_reference.PAGES


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Anchors are those that GitHub makes."""
    config.mdx_configs.setdefault("toc", {})["slugify"] = github_markdown.slugify
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    generated = {name: write() for name, write in GENERATED.items()} | repository.readme_pages()
    for name, text in generated.items():
        files.append(File.generated(config, name, content=text))
    for notebook in [file for file in files if file.src_uri.endswith(".ipynb")]:
        for name, content in notebooks.write_page(Path(str(notebook.abs_src_path))).items():
            folder = Path(notebook.src_uri).parent
            files.append(File.generated(config, (folder / name).as_posix(), content=content))
    pages = {file.src_uri: file.content_string for file in files if file.is_documentation_page()}
    for name, content in repository.linked_files(pages).items():
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, *, page: Page, **_: Any) -> str:
    linked = repository.relink(markdown, page.file.src_uri)
    return github_markdown.convert(linked)
