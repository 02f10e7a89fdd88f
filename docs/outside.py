#!/usr/bin/env python3
"""For mdBook: a link to a file of the repository that is not in the book becomes the file's name.

In the repository such links lead somewhere, and a test holds that; in the book they would lead nowhere.
"""

import json
import posixpath
import re
import sys


def pages(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            yield chapter
            yield from pages(chapter["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:
        return
    _, book = json.load(sys.stdin)
    chapters = list(pages(book.get("sections") or book["items"]))
    inside = {chapter["path"] for chapter in chapters}
    for chapter in chapters:
        folder = posixpath.dirname(chapter["path"])

        def named(match):
            text, target = match.groups()
            path = posixpath.normpath(posixpath.join(folder, target.split("#")[0]))
            if "://" in target or target.startswith("#") or path in inside or path.endswith(".svg"):
                return match.group(0)
            name = path.removeprefix("../")
            return text if name in text.strip("`") else f"{text} (`{name}`)"

        chapter["content"] = re.sub(r"(?<!!)\[([^\]]*)\]\(([^)\s]+)\)", named, chapter["content"])
    json.dump(book, sys.stdout)


if __name__ == "__main__":
    main()
