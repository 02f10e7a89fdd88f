"""The voice that writes: choices that depend on the document's path alone, and a small language for variable prose.

In a template
    [one|another]   is one of the alternatives (they may nest),
    <20-45>         is a whole number of that range,
    {name}          is a fact of the document, the same wherever it stands.
"""

import hashlib
import random
import re

SEED = "tidegate samples 1"

MONTHS = (
    "January February March April May June July August September October November December".split()
)

_CHOICE = re.compile(r"\[([^\[\]]*)\]")
_RANGE = re.compile(r"<(\d+)-(\d+)>")

PEOPLE = [
    "Ingrid Vasseur", "Tomasz Bielak", "Amara Okonjo", "Declan Rourke", "Mei-Ling Tran", "Sofia Lindqvist",
    "Rafael Quintero", "Priya Raghunathan", "Hannah Oyelaran", "Jonas Achterberg", "Leila Haddadi", "Gwen Prosser",
    "Mattias Kolb", "Yusuf Demirtas", "Beatriz Carvalhal", "Callum Fairbairn", "Noor van Dijk", "Elena Marchetti",
    "Samuel Adjei", "Katarzyna Wrona", "Oliver Threlfall", "Farida Benali", "Henrik Sandvoll", "Ruth Abernathy",
]


class Voice:
    """A source of choices, seeded by the path. Only `random()` is used: its sequence is the one that Python promises to keep."""

    def __init__(self, path, facts):
        digest = hashlib.sha256(f"{SEED}/{path}".encode()).digest()
        self._random = random.Random(int.from_bytes(digest[:8], "big"))
        self._left = {}
        self.facts = dict(facts)

    def number(self, low, high):
        return low + int(self._random.random() * (high - low + 1))

    def pick(self, options):
        return options[self.number(0, len(options) - 1)]

    def shuffled(self, items):
        items = list(items)
        for i in range(len(items) - 1, 0, -1):
            j = self.number(0, i)
            items[i], items[j] = items[j], items[i]
        return items

    def draw(self, pool):
        """One of a pool that has not been used in this document; when all have been, the pool starts again."""
        left = self._left.get(id(pool))
        if not left:
            left = self._left[id(pool)] = self.shuffled(pool)
        return left.pop()

    def left(self, pool):
        """How many of a pool are still unused."""
        return len(self._left.get(id(pool), pool))

    def say(self, template, **more):
        text = template
        while True:
            changed = _CHOICE.sub(lambda m: self.pick(m[1].split("|")), text)
            if changed == text:
                break
            text = changed
        text = _RANGE.sub(lambda m: str(self.number(int(m[1]), int(m[2]))), text)
        return text.format_map({**self.facts, **more})

    def people(self, count):
        return self.shuffled(PEOPLE)[:count]

    def date(self, year=None):
        return f"{self.number(1, 28)} {self.pick(MONTHS)} {year or self.number(2022, 2026)}"

    def money(self, low, high, currency="EUR"):
        return f"{currency} {self.number(low, high) * 50:,}"


def words(text):
    return len(text.split())


class Page:
    """A text that grows paragraph by paragraph and knows how long it is."""

    def __init__(self, voice):
        self.voice = voice
        self.parts = []
        self.length = 0

    def add(self, template, **more):
        return self.raw(self.voice.say(template, **more))

    def raw(self, text):
        self.parts.append(text.strip())
        self.length += words(text)
        return self

    def text(self):
        return "\n\n".join(self.parts) + "\n"
