"""Writes the reference, docs/reference/: a page for each part, from the docstrings of the public headers.

usage: main.py [--check] PROJECT

Doxygen reads the headers, this writes its XML as Markdown. `cmake --build BUILD --target reference` runs it. With --check it
compares with what is there, and writes nothing.

Every public name has a docstring: otherwise exit status 1, and a list of those that have none. A declaration directly below one
with a docstring, without an empty line between, shares it.
"""
import sys

sys.dont_write_bytecode = True  # this folder is the project's

import difflib
import itertools
import re
import textwrap
from pathlib import Path

import doxygen
from declarations import initializer, template_head, tidy
from doxygen import flat, one_line
from headers import CHAPTERS, SOME, all_headers, place
from model import Model, line_of, name_of


def code(text, language="cpp"):
    return f"```{language}\n{text}\n```"


class Writer:
    """Markdown for the entities of a model. Each function returns paragraphs, the heading first."""

    def __init__(self, model):
        self.model = model

    def concept(self, compound):
        text = "".join(compound.find("initializer").itertext()).replace("heapwright::", "").strip()
        text = re.sub(r"=\s+", "= ", text.replace("template<", "template <"))
        return [f"## {name_of(compound)}", code(f"{text};"), self.model.text_of(compound, name_of(compound))]

    def type(self, compound, level=2):
        name = name_of(compound)
        declaration = f"{template_head(compound)}{compound.get('kind')} {name.split('::')[-1]};"
        lines = [f"{'#' * level} {name}", code(declaration), self.model.text_of(compound, name), *self.bases(compound)]
        members = [m for section in compound.findall("sectiondef") for m in section if m.tag == "memberdef" and self.model.is_shown(m)]
        variables = [m for m in members if m.get("kind") == "variable"]
        enums = [m for m in members if m.get("kind") == "enum"]
        if variables:
            lines.append(self.table(sorted(variables, key=line_of), f"{name}::"))
        for enum in enums:
            lines += self.enum(enum, level + 1, f"{name}::")
        lines += self.functions([m for m in members if m not in variables + enums], level + 1, f"{name}::")
        for inner in compound.findall("innerclass"):
            nested = self.model.compounds.get(inner.get("refid"))
            if inner.get("prot") == "public" and nested is not None:
                lines += self.type(nested, level + 1)
        return lines

    def bases(self, compound):
        for base in compound.findall("basecompoundref"):
            target = self.model.compounds.get(base.get("refid"))
            if base.get("prot") == "public" and target is not None and self.model.is_public(target):
                name = name_of(target)
                what = "Passes on what its parts can do, beyond what stands here" if name == "forwards" else "Has all of"
                yield f"{what}: [{name}]({self.model.page_of[self.model.header_of(target)]}.md)."

    def table(self, variables, scope):
        rows = ["| name | type, default | |", "|---|---|---|"]
        for member in variables:
            self.model.text_of(member, scope + name_of(member))
            static = "static " if member.get("static") == "yes" else ""
            kind = static + tidy(re.sub(r"\b(constexpr|static) ", "", flat(member.find("type")))) + flat(member.find("argsstring"))
            rows.append(f"| `{name_of(member)}` | `{kind}{initializer(member)}` | {one_line(member)} |")
        return "\n".join(rows)

    def enum(self, enum, level=2, scope=""):
        name = scope + name_of(enum)
        rows = ["| value | |", "|---|---|"]
        for value in enum.findall("enumvalue"):
            if not one_line(value):
                self.model.report(self.model.header_of(enum), line_of(enum), f"{name}::{name_of(value)} has no docstring")
            rows.append(f"| `{name_of(value)}` | {one_line(value)} |")
        return [f"{'#' * level} {name}", self.model.text_of(enum, name), "\n".join(rows)]

    def functions(self, members, level, scope):
        """Functions, types and constants; overloads in a row have one heading."""
        lines, last_name = [], None
        for group, text in self.model.groups(members, scope):
            name = name_of(group[0])
            if name != last_name:
                lines.append(f"{'#' * level} {scope}{name}")
            last_name = name
            lines += [code("\n".join(self.model.signature(m) for m in group))] + ([text] if text else [])
        return lines


def entries(model):
    """(header, line, paragraphs) for each public entity of a namespace, and for each C function."""
    writer = Writer(model)
    for compound in model.compounds.values():
        kind, name = compound.get("kind"), name_of(compound)
        if kind in ("class", "struct", "union", "concept"):
            is_inner = "::" in name.split("<")[0].removeprefix("live::")
            if not is_inner and "<" not in name and model.is_public(compound):
                text = writer.concept(compound) if kind == "concept" else writer.type(compound)
                yield model.header_of(compound), line_of(compound), text
        elif kind == "file" or kind == "namespace" and "detail" not in name:
            scope = f"{name}::" if kind == "namespace" and name != "heapwright" else ""
            yield from namespace_entries(model, writer, compound, scope)


def namespace_entries(model, writer, compound, scope):
    by_header = {}
    for member in compound.iter("memberdef"):
        # A file also lists what is in its namespaces.
        is_elsewhere = compound.get("kind") == "file" and "::" in (member.findtext("qualifiedname") or "")
        if is_elsewhere or member.get("kind") == "define" or not model.is_public(member) or "operator " in name_of(member):
            continue
        if member.get("kind") == "enum":
            yield model.header_of(member), line_of(member), writer.enum(member)
        else:
            by_header.setdefault(model.header_of(member), []).append(member)
    for header, members in by_header.items():
        for group, text in model.groups(members, scope):
            signatures = code("\n".join(model.signature(m) for m in group))
            yield header, line_of(group[0]), [f"## {scope}{name_of(group[0])}", signatures] + ([text] if text else [])


def introduction(source):
    """The first paragraph of a header, with the code or the table below it if it ends with a colon."""
    comment = [re.sub(r"^(// ?|/\* ?| \* ?)", "", line) for line in
               itertools.takewhile(lambda line: line.startswith(("//", "/*", " *")), source)]
    prose = list(itertools.takewhile(lambda line: line.strip() and not line.startswith("  "), comment))
    text = " ".join(prose)
    if not text.endswith(":"):
        return text
    below = itertools.takewhile(lambda line: not line.strip() or line.startswith("  "), comment[len(prose):])
    below = textwrap.dedent("\n".join(below)).strip("\n")
    is_code = re.search(r";( *//.*)?$", below, re.MULTILINE)
    return f"{text}\n\n{code(below, 'cpp' if is_code else '')}"


def first_sentence(text):
    return re.split(r"(?<=\.) (?=[A-Z])|\n", text, maxsplit=1)[0].rstrip(":").replace("|", "\\|")


def page(model, name, headers, entities):
    public = [h for h in headers if not h.endswith(".cpp") and (h not in SOME or h == headers[0])]
    where = f"Header: {', '.join(f'`<heapwright/{h}>`' for h in public)}." if public else "Declared by libc, in `<stdlib.h>` and `<malloc.h>`."
    lines = [f"# {name}", introduction(model.sources[headers[0]]), f"{where} [All parts](README.md)"]
    heading = None
    for _, _, text in sorted(entities, key=lambda entity: (headers.index(entity[0]), entity[1])):
        lines += text[1:] if text[0] == heading else text
        heading = text[0]
    return "\n\n".join(lines) + "\n"


def index(model):
    lines = ["# Reference", "A page for each part, made from the docstrings of the public headers by `cmake --build BUILD --target reference`; "
             "a test compares. Everything is in the namespace `heapwright`. What the parts have in common, and how they are combined, "
             "is in [concepts](../concepts.md)."]
    for chapter, pages in CHAPTERS.items():
        rows = [f"| [{name}]({name}.md) | {first_sentence(introduction(model.sources[headers[0]]))} |" for name, headers in pages.items()]
        lines += [f"## {chapter}", "\n".join(["| | |", "|---|---|", *rows])]
    return "\n\n".join(lines) + "\n"


def pages(model):
    of_page = {}
    for entity in entries(model):
        of_page.setdefault(model.page_of[entity[0]], []).append(entity)
    texts = {f"{name}.md": page(model, name, headers, of_page.get(name, []))
             for of_chapter in CHAPTERS.values() for name, headers in of_chapter.items()}
    return texts | {"README.md": index(model)}


def main():
    is_check = "--check" in sys.argv
    project = Path(sys.argv[-1]).resolve()
    model = Model(project, doxygen.read(place(project, header) for header in all_headers()))
    texts = pages(model)
    model.check_headers()
    if model.missing:
        sys.exit("\n".join(sorted(set(model.missing))))
    folder = project / "docs/reference"
    there = {file.name: file.read_text() for file in folder.glob("*.md")}
    if is_check and there != texts:
        for name in sorted(there.keys() | texts.keys()):
            sys.stdout.writelines(difflib.unified_diff(there.get(name, "").splitlines(True), texts.get(name, "").splitlines(True),
                                                       f"docs/reference/{name}", "from the docstrings", n=1))
        sys.exit("the reference is not up to date: cmake --build BUILD --target reference")
    if not is_check:
        folder.mkdir(exist_ok=True)
        for name in there.keys() - texts.keys():
            (folder / name).unlink()
        for name, text in texts.items():
            (folder / name).write_text(text)


if __name__ == "__main__":
    main()
