#!/usr/bin/env python3
"""Prints figures of the code: figures.py [--list]

* lines of the product, without comments and tests
* circles of files that import each other; a `pub use` is an import
* imports up: between modules of a crate that import each other, those against the order of its layers
* a document's way: what the first file of it reaches by imports in `activities/`, and the caller in `calls/`; the types
  are those that one of these files names of another

`--list` also names the files behind the figures."""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# The simulator, the testkit and the clients are no part of the product.
CRATES = ["types", "lua", "workflows", "documents", "quota", "providers", "calls", "activities", "."]
WAY = {"activities": "document/process.rs", "calls": "caller.rs"}

TOKEN = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<text>b?r(?P<hash>\#*)".*?"(?P=hash)|b?"(?:\\.|[^"\\])*"|b?'(?:\\.[^']*|[^'\\])')"""
    r"""|(?P<code>'?\w+|::|[^\s\w])|\n""",
    re.S,
)
TESTS = (["#", "[", "cfg", "(", "test"], ["#", "[", "cfg", "(", "all", "(", "test"])


def tokens(text):
    """Tokens with their lines, without comments and tests; a text counts as one token for each of its lines."""
    found, line = [], 1
    for match in TOKEN.finditer(text):
        if match["text"]:
            found.extend(("text", line + n) for n in range(match.group().count("\n") + 1))
        elif match["code"]:
            found.append((match.group(), line))
        line += match.group().count("\n")
    kept, at = [], 0
    while at < len(found):
        if not any([token for token, _ in found[at : at + len(test)]] == test for test in TESTS):
            kept.append(found[at])
            at += 1
            continue
        depth = 0
        while at < len(found):
            token = found[at][0]
            depth += (token in ("{", "(", "[")) - (token in ("}", ")", "]"))
            at += 1
            if depth == 0 and token in ("}", ";"):
                break
    return kept


class Module:
    """A module: its file, its path in the crate, the paths that it names, and what it passes on by `pub use`."""

    def __init__(self, file, path):
        self.file, self.path = file, path
        self.named, self.passed, self.globs, self.items = [], {}, [], set()


class Crate:
    """The modules of a crate, and the arrows from file to file."""

    def __init__(self, folder):
        self.source, self.modules, self.lines = folder / "src", {}, 0
        roots = [self.source / name for name in ("lib.rs", "main.rs") if (self.source / name).is_file()]
        for root in roots:
            self.read(root, () if root.stem == "lib" else ("main",), self.source)
        self.arrows = {}
        for module in self.modules.values():
            for path in module.named:
                found = self.item(module.path, path, 0)
                if found and found[0] != module.file:
                    self.arrows.setdefault(module.file, {}).setdefault(found[0], set()).add(found[1])

    def read(self, file, path, folder):
        found = tokens(file.read_text())
        self.lines += len({line for _, line in found})
        self.parse([token for token, _ in found], file, path, folder)

    def parse(self, words, file, path, folder):
        here = self.modules.setdefault(path, Module(file, path))
        at, end = 0, len(words)
        while at < end:
            word = words[at]
            if word == "mod" and at + 2 < end and words[at + 2] in (";", "{"):
                name = words[at + 1]
                below = folder / name
                if words[at + 2] == ";":
                    beside = below.with_suffix(".rs")
                    inner = beside if beside.is_file() else below / "mod.rs"
                    if inner.is_file():
                        self.read(inner, (*path, name), below)
                    at += 3
                    continue
                close, depth = at + 3, 1
                while depth:
                    depth += (words[close] == "{") - (words[close] == "}")
                    close += 1
                self.parse(words[at + 3 : close - 1], file, (*path, name), below)
                at = close
            elif word == "use" and words[at + 1] != "<":
                close = words.index(";", at)
                public = self.is_public(words, at)
                for names, name in flattened(words[at + 1 : close]):
                    here.named.append(names)
                    if public and name == "*":
                        here.globs.append(names)
                    elif public:
                        here.passed[name] = names
                at = close + 1
            elif word in ("struct", "enum", "trait", "fn", "const", "static", "type"):
                here.items.add(words[at + 1])
                at += 2
            elif at + 1 < end and words[at + 1] == "::" and word.isidentifier() and words[at - 1] != "::":
                if words[at - 1] == "in" and words[at - 2] == "(":
                    at += 1
                    continue
                names, close = [word], at + 1
                while close + 1 < end and words[close] == "::" and words[close + 1].isidentifier():
                    names.append(words[close + 1])
                    close += 2
                here.named.append(names)
                at = close
            else:
                at += 1

    @staticmethod
    def is_public(words, at):
        if words[at - 1] != ")":
            return words[at - 1] == "pub"
        while words[at] != "(":
            at -= 1
        return words[at - 1] == "pub"

    def item(self, module, names, depth):
        """The file that defines what the names mean in a module, and the item; nothing for other crates' items."""
        first, rest = names[0], list(names[1:])
        if first == "crate":
            at = ()
        elif first == "self":
            at = module
        elif first == "super":
            at = module[:-1]
        elif (*module, first) in self.modules:
            at = (*module, first)
        else:
            return None
        while rest and (rest[0] == "super" or (*at, rest[0]) in self.modules):
            name = rest.pop(0)
            at = at[:-1] if name == "super" else (*at, name)
        found = self.modules.get(at)
        if not found:
            return None
        if not rest or depth > 8:
            return found.file, ""
        if rest[0] in found.passed:
            return self.item(at, found.passed[rest[0]], depth + 1)
        if rest[0] not in found.items:
            for glob in found.globs:
                original = self.item(at, [*glob, rest[0]], depth + 1)
                if original and original[1]:
                    return original
        return found.file, rest[0]


def flattened(words):
    """The paths of a `use`, each with the name that it gives."""
    found, at = [], 0

    def tree(above):
        nonlocal at
        names = list(above)
        while at < len(words):
            word = words[at]
            at += 1
            if word == "{":
                while words[at] != "}":
                    tree(names)
                    at += words[at] == ","
                at += 1
                return
            if word == "*":
                found.append((names, "*"))
                return
            if word != "::":
                names = names if word == "self" and names else [*names, word]
                if at < len(words) and words[at] == "as":
                    found.append((names, words[at + 1]))
                    at += 2
                    return
                if at == len(words) or words[at] != "::":
                    found.append((names, names[-1]))
                    return

    tree([])
    return found


def reached(arrows, start):
    seen, unread = set(), [start]
    while unread:
        for to in arrows.get(unread.pop(), ()):
            if to not in seen:
                seen.add(to)
                unread.append(to)
    return seen


def circles(arrows):
    """The largest sets of nodes of which each reaches all others, more than one node each."""
    reach = {node: reached(arrows, node) for node in arrows}
    sets = {frozenset(other for other in to if node in reach.get(other, ())) for node, to in reach.items()}
    return sorted((sorted(circle) for circle in sets if len(circle) > 1), key=str)


def imports_up(crate):
    """What a circle of modules imports upwards, where the module with the fewest imports of the others is the lowest."""
    between = collections.defaultdict(list)
    for file, to in crate.arrows.items():
        # The table of contents names all modules.
        if file.parent != crate.source or file.stem not in ("lib", "main"):
            for other in to:
                ends = [path.relative_to(crate.source).parts[0].removesuffix(".rs") for path in (file, other)]
                between[tuple(ends)].append((file, other))
    modules = collections.defaultdict(set)
    for here, there in between:
        if here != there:
            modules[here].add(there)
    up = []
    for circle in map(set, circles(modules)):
        while circle:
            imports = {here: sum((between.get((here, there), []) for there in circle - {here}), []) for here in circle}
            lowest = min(sorted(circle), key=lambda here: len(imports[here]))
            up.extend(imports[lowest])
            circle.remove(lowest)
    return up


def lua_lines(folder):
    texts = [re.sub(r"--\[\[.*?\]\]", "", file.read_text(), flags=re.DOTALL) for file in folder.rglob("*.lua")]
    return sum(1 for text in texts for line in text.splitlines() if line.strip() and not line.strip().startswith("--"))


def main(lists):
    crates = {name: Crate(ROOT / name) for name in CRATES}
    found = [circle for crate in crates.values() for circle in circles(crate.arrows)]
    up = [arrow for crate in crates.values() for arrow in imports_up(crate)]
    way, types = set(), set()
    for name, first in WAY.items():
        arrows, first = crates[name].arrows, crates[name].source / first
        files = reached(arrows, first) | {first}
        way |= files
        named = ((to, item) for file in files for to, items in arrows.get(file, {}).items() for item in items)
        types |= {(to, item) for to, item in named if item[:1].isupper() and not item.isupper()}
    lines = sum(crate.lines for crate in crates.values())
    largest = max(map(len, found), default=0)
    print(f"product lines: {lines} of Rust, {lua_lines(ROOT / 'lua')} of Lua")
    print(f"circles of files: {len(found)}, the largest of {largest}; imports up: {len(up)}")
    print(f"a document's way: {len(way)} files, {len(types)} types")
    if lists:
        rows = [("circle", circle) for circle in found] + [("up", arrow) for arrow in up] + [("way", [file]) for file in sorted(way)]
        for name, files in rows:
            print(f"{name}:", *(file.relative_to(ROOT) for file in files))


main("--list" in sys.argv[1:])
