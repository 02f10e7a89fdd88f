#!/usr/bin/env python3
"""Writes the types of `tidegate.call` and `tidegate.embed` for TypeScript and Python from one definition:
the structs in workflows/src/input/call.rs and workflows/src/contract/call.rs, and their comments.

    scripts/door_stubs.py           writes them
    scripts/door_stubs.py --check   says what differs, and exits 1
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
SOURCES = {
    "workflows/src/input/call.rs": ("CallInput", "EmbedInput"),
    "workflows/src/contract/call.rs": ("CallOutcome", "EmbedOutcome"),
}
HEAD = "Written by scripts/door_stubs.py from {}; change the comments there."

# What a type of ours is on the wire, in TypeScript and in Python. A type that is not here is a fault.
TYPES = {
    "String": ("string", "str"),
    "bool": ("boolean", "bool"),
    "u32": ("number", "int"),
    "u64": ("number", "int"),
    "f64": ("number", "float"),
    "Value": ("unknown", "Any"),
    "ModelId": ("string", "str"),
    "Tenant": ("string", "str"),
    "OnCut": ("'raise' | 'keep' | 'fail'", "Literal['raise', 'keep', 'fail']"),
    "Effort": ("'none' | 'low' | 'medium' | 'high'", "Literal['none', 'low', 'medium', 'high']"),
    "Map<String, Value>": ("Record<string, unknown>", "dict[str, Any]"),
    "Vec<Message>": ("Message[]", "list[Message]"),
    "Vec<String>": ("string[]", "list[str]"),
    "Vec<Vec<f32>>": ("number[][]", "list[list[float]]"),
    "body": ("Record<string, unknown>", "dict[str, Any]"),
}
BY_URI = ("prompt", "messages", "body", "inputs")
REQUIRED = {"EmbedInput": ("model", "inputs")}


@dataclass
class Field:
    name: str
    says: str
    type: str
    optional: bool


def fields(text: str, struct: str) -> list[Field]:
    body = re.search(rf"pub struct {struct} {{\n(.*?)\n}}", text, re.DOTALL)
    assert body, f"no struct {struct}"
    found = []
    for says, attributes, name, kind in re.findall(
        r"((?:    ///[^\n]*\n)+)((?:    #\[[^\n]*\n(?:        [^\n]*\n|    \)\]\n)*)*)    pub (\w+): ([^\n]+),\n",
        body[1] + "\n",
    ):
        says = " ".join(line.strip().removeprefix("///").strip() for line in says.splitlines())
        optional = kind.startswith("Option<") or "skip_serializing_if" in attributes
        kind = re.sub(r"^Option<(.*)>$", r"\1", kind)
        if name == "has_body":
            name, kind, says = "body", "body", "Instead of all that is asked: a body in the vendor's own form, sent as it is."
        if struct.endswith("Input"):
            optional = name not in REQUIRED.get(struct, ())
        found.append(Field(name, says, kind, optional))
    count = body[1].count("    pub ")
    assert len(found) == count, f"{struct}: {len(found)} of {count} fields were read"
    return found


def of(field: Field, struct: str, language: int) -> str:
    kind = TYPES[field.type][language]
    if struct.endswith("Input") and field.name in BY_URI:
        kind += " | ByUri"
    if struct.endswith("Outcome") and field.name == "cost_usd":
        kind += (" | null", " | None")[language]
    return kind


def typescript(structs: dict[str, list[Field]], sources: str) -> str:
    out = [
        f"// {HEAD.format(sources)}",
        "",
        "/** What is too large to pass through Temporal, under `[calls] inputs`. */",
        "export interface ByUri {\n  uri: string;\n}",
        "",
        "export interface Message {\n  role: 'system' | 'user' | 'assistant';\n  content: string;\n}",
    ]
    for struct, found in structs.items():
        out += ["", f"export interface {struct} {{"]
        for field in found:
            out.append(f"  /** {field.says} */")
            out.append(f"  {field.name}{'?' if field.optional else ''}: {of(field, struct, 0)};")
        out.append("}")
    return "\n".join(out) + "\n"


def python(structs: dict[str, list[Field]], sources: str) -> str:
    out = [
        f"# {HEAD.format(sources)}",
        "from typing import Any, Literal, NotRequired, TypedDict",
        "",
        "class ByUri(TypedDict):",
        "    # What is too large to pass through Temporal, under [calls] inputs.",
        "    uri: str",
        "",
        "class Message(TypedDict):",
        "    role: Literal['system', 'user', 'assistant']",
        "    content: str",
    ]
    for struct, found in structs.items():
        out += ["", f"class {struct}(TypedDict):"]
        for field in found:
            kind = of(field, struct, 1)
            out.append(f"    # {field.says}")
            out.append(f"    {field.name}: {f'NotRequired[{kind}]' if field.optional else kind}")
    return "\n".join(out) + "\n"


def main() -> int:
    structs = {}
    for source, names in SOURCES.items():
        text = (ROOT / source).read_text()
        structs |= {name: fields(text, name) for name in names}
    sources = " and ".join(SOURCES)
    written = {
        "examples/temporal-typescript/src/tidegate.ts": typescript(structs, sources),
        "examples/temporal-python/tidegate_types.py": python(structs, sources),
    }
    differ = [name for name, text in written.items() if not (ROOT / name).exists() or (ROOT / name).read_text() != text]
    if "--check" in sys.argv[1:]:
        for name in differ:
            print(f"{name} is not what scripts/door_stubs.py writes; run it", file=sys.stderr)
        return int(bool(differ))
    for name in differ:
        (ROOT / name).write_text(written[name])
        print(name)
    return 0


if __name__ == "__main__":
    sys.exit(main())
