#!/usr/bin/env python3
"""Checks that each link in a built book leads to a page, and to a section, of that book: check_book.py FOLDER"""

import html.parser
import pathlib
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.links, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        for name, value in attributes:
            if name == "id":
                self.ids.add(value)
            if name in ("href", "src") and tag in ("a", "img", "link", "script") and value:
                self.links.append(value)


def main(folder):
    files = [file for file in folder.rglob("*.html") if file.name not in ("print.html", "toc.html", "404.html")]
    pages = {file: Page(file.read_text()) for file in files}
    bad, looked = 0, 0
    for file, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme or parts.netloc or not (parts.path or parts.fragment):
                continue
            looked += 1
            path = urllib.parse.unquote(parts.path)
            target = (file.parent / path).resolve() if path else file
            fragment = urllib.parse.unquote(parts.fragment)
            if not target.exists() or folder not in target.parents:
                print(f"{file.relative_to(folder)}: {link} leads nowhere", file=sys.stderr)
                bad += 1
            elif fragment and target in pages and fragment not in pages[target].ids:
                print(f"{file.relative_to(folder)}: {link}: there is no such section", file=sys.stderr)
                bad += 1
    if not bad and looked:
        print(f"the book has {len(pages)} pages, and each of its {looked} links leads somewhere")
    return 1 if bad or not looked else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
