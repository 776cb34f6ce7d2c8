#!/usr/bin/env python3
"""check_links.py FOLDER: every link and picture of the HTML files in a folder leads to a file there, every
fragment to an element, and nothing is loaded from a network."""
import html.parser
import os
import sys
import urllib.parse

LOADED = {"img": "src", "script": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.loaded, self.ids = [], [], set()
        # What follows is a recording, megabytes of it, and the page's script.
        self.feed(text.split('<script type="application/jsonl"')[0])

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        if "id" in attributes:
            self.ids.add(attributes["id"])
        if tag == "a" and "href" in attributes:
            self.links.append(attributes["href"])
        if tag in LOADED and LOADED[tag] in attributes:
            self.loaded.append(attributes[LOADED[tag]])
        if tag == "img" and not attributes.get("alt"):
            self.loaded.append("(a picture without alt text)")


def check(folder):
    pages, problems, count = {}, [], 0
    for root, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".html"):
                path = os.path.join(root, name)
                with open(path, encoding="utf-8") as file:
                    pages[path] = Page(file.read())
    for path, page in pages.items():
        here = os.path.relpath(path, folder)
        for target in page.loaded:
            if "://" in target or target.startswith(("//", "(")):
                problems.append(f"{here} loads {target}")
        for target in page.links + page.loaded:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or target.startswith("("):
                continue
            count += 1
            file = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(parts.path))) if parts.path else path
            if not os.path.isfile(file) or os.path.relpath(file, folder).startswith(".."):
                problems.append(f"{here} links to {target}, which is not there")
            elif parts.fragment and file in pages and parts.fragment not in pages[file].ids:
                problems.append(f"{here} links to {target}, which has no such heading")
    if problems:
        sys.exit(f"{len(problems)} problems:\n" + "\n".join(problems[:20]))
    print(f"{len(pages)} pages, {count} links, all lead somewhere")


check(sys.argv[1])
