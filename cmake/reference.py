"""Writes the reference, docs/reference/: a page for each part, from the docstrings of the public headers.

usage: reference.py [--check] PROJECT

Doxygen reads the headers, this writes its XML as Markdown. `cmake --build BUILD --target reference` runs it. With --check it
compares with what is there and writes nothing.

Every public name has a docstring; exit status 1 and a list of those that have none, otherwise. An overload, a constant or a
member directly below one with a docstring, without an empty line between, shares it.
"""
import difflib
import itertools
import re
import subprocess
import sys
import tempfile
import textwrap
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

# Headers whose names are not all public: which are.
SOME = {
    "core/bits.hpp": {"KiB", "MiB", "GiB"},
    "core/check.hpp": {"checks_callers", "checks_itself"},
    "core/poison.hpp": {"poisons", "poison", "unpoison", "reveal"},
    "core/parts.hpp": {"from"},
    "core/forwarding.hpp": {"forwards", "joint_stats", "reallocate_by_copy"},
    "allocator/block_range.hpp": {"merge"},
    "heap/figures.hpp": {"heap_figures", "class_figures"},
    "live.h": {"heapwright_live_" + name for name in ("start", "mark", "reset", "record_allocation", "record_free", "meter",
                                                      "open_meter", "set_meter", "close_meter")},
}

# What the front doors include and no program names.
HIDDEN = {"heap/malloc_heap.hpp", "platform/linux/linux_os.hpp"}

UNQUOTED_CODE = re.compile(r".*///<? {1,4}(?! ).*\w<([A-Za-z]+)")

# Chapter: page: its headers. A page's introduction is the first paragraph of its first header,
# and the code or table below if it ends with a colon.
CHAPTERS = {
    "What all parts share": {
        "layout": ["core/layout.hpp", "core/bits.hpp"],
        "concepts": ["core/concepts.hpp"],
        "forwarding": ["core/forwarding.hpp", "core/parts.hpp"],
        "checks": ["core/check.hpp"],
        "poison": ["core/poison.hpp"],
        "text": ["core/text.hpp"],
        "lock": ["sync/lock.hpp"],
        "kit": ["kit.hpp"],
    },
    "Sources": {
        "os_pages": ["source/os_pages.hpp"],
        "huge_pages": ["source/huge_pages.hpp"],
        "guard_pages": ["source/guard_pages.hpp"],
        "buffer": ["source/buffer.hpp"],
        "slab_memory": ["source/slab_memory.hpp"],
        "upstream": ["source/upstream.hpp"],
    },
    "Allocators": {
        "arena": ["allocator/arena.hpp"],
        "stack_arena": ["allocator/stack_arena.hpp"],
        "pool": ["allocator/pool.hpp"],
        "object_pool": ["allocator/object_pool.hpp"],
        "slab": ["allocator/slab.hpp"],
        "best_fit": ["allocator/best_fit.hpp", "allocator/block_range.hpp"],
    },
    "Combinators": {
        "fallback": ["combine/fallback.hpp"],
        "segregate": ["combine/segregate.hpp"],
        "bucketed": ["combine/bucketed.hpp"],
        "locked": ["combine/locked.hpp"],
        "cached": ["combine/cached.hpp"],
        "metered": ["combine/metered.hpp"],
        "poisoned": ["combine/poisoned.hpp"],
        "guarded": ["combine/guarded.hpp"],
        "leak_checked": ["combine/leak_checked.hpp"],
    },
    "Adaptors": {
        "std_allocator": ["adapt/std_allocator.hpp"],
        "memory_resource": ["adapt/memory_resource.hpp"],
        "unique": ["adapt/unique.hpp"],
        "compact_copy": ["adapt/compact_copy.hpp"],
        "recycler": ["adapt/recycler.hpp"],
        "counted_new": ["adapt/counted_new.hpp"],
    },
    "The thread-caching heap": {
        "heap": ["heap.hpp", "heap/basic_heap.hpp"],
        "recipe": ["heap/recipe.hpp"],
        "size_classes": ["core/size_classes.hpp"],
        "heap_statistics": ["heap/heap_statistics.hpp"],
    },
    "The malloc, seen from a program and from outside": {
        "malloc": ["malloc/override/c.cpp", "malloc/override/glibc.cpp"],
        "process_record": ["malloc/process_record.hpp", "heap/figures.hpp"],
        "process_report": ["malloc/process_report.hpp"],
    },
    "The live view": {
        "live.h": ["live.h"],
        "live": ["live.hpp"],
    },
}

DOXYFILE = """
INPUT = {input}
OUTPUT_DIRECTORY = {output}
GENERATE_HTML = NO
GENERATE_LATEX = NO
GENERATE_XML = YES
XML_PROGRAMLISTING = NO
EXTRACT_ALL = YES
EXCLUDE_SYMBOLS = *detail::*
MACRO_EXPANSION = YES
EXPAND_ONLY_PREDEF = YES
PREDEFINED = __cplusplus=202302L __cpp_lib_allocate_at_least=202302L O_CLOEXEC=02000000 PR_SET_PTRACER=1 HEAPWRIGHT_EXPORT=
SORT_MEMBER_DOCS = NO
AUTOLINK_SUPPORT = NO
QUIET = YES
WARN_AS_ERROR = FAIL_ON_WARNINGS
"""


def all_headers():
    return sorted({header for pages in CHAPTERS.values() for headers in pages.values() for header in headers})


def place(project, header):
    """Public headers lie in include/heapwright, the rest in the project."""
    public = project / "include/heapwright" / header
    return public if public.exists() else project / header


# --- text

def inline(node):
    """The text of a paragraph, as Markdown."""
    out = [node.text or ""]
    for child in node:
        text = inline(child)
        out.append({"computeroutput": f"`{text}`", "emphasis": f"*{text}*", "bold": f"**{text}**", "linebreak": "\n",
                    "ndash": "--", "mdash": "---", "ulink": f"[{text}]({child.get('url')})"}.get(child.tag, text))
        out.append(child.tail or "")
    return "".join(out)


BLOCKS = {"itemizedlist", "orderedlist", "verbatim", "preformatted", "programlisting", "parameterlist", "simplesect", "table"}


def blocks(node):
    """The paragraphs, lists and pieces of code in a description."""
    for para in node:
        if para.tag not in ("para", "sect1"):
            continue
        run = ET.Element("run")
        run.text = para.text

        def flush():
            text = " ".join(inline(run).split())
            return [text] if text else []

        for child in para:
            if child.tag not in BLOCKS:
                run.append(child)
                continue
            yield from flush()
            run = ET.Element("run")
            run.text = child.tail
            if child.tag in ("verbatim", "preformatted"):
                yield "```cpp\n" + (child.text or "").strip("\n") + "\n```"
            elif child.tag == "programlisting":
                yield "```cpp\n" + "\n".join(code_line(line) for line in child.iter("codeline")) + "\n```"
            elif child.tag in ("itemizedlist", "orderedlist"):
                yield "\n".join("- " + " ".join(" ".join(blocks(item)).split()) for item in child.findall("listitem"))
            elif child.tag == "parameterlist":
                yield "\n".join(f"- `{item.findtext('.//parametername')}`: {' '.join(blocks(item.find('parameterdescription')))}"
                                for item in child.findall("parameteritem"))
            else:
                yield from blocks(child)
        yield from flush()


def code_line(line):
    out = []

    def walk(node):
        if node.tag == "sp":
            out.append(" ")
        out.append(node.text or "")
        for child in node:
            walk(child)
            out.append(child.tail or "")

    walk(line)
    return "".join(out).rstrip("\n")


def description(entity):
    parts = [block for tag in ("briefdescription", "detaileddescription") for block in blocks(entity.find(tag))]
    return "\n\n".join(parts)


def one_line(entity):
    return " ".join(description(entity).split()).replace("|", "\\|")


def flat(node):
    return "" if node is None else " ".join("".join(node.itertext()).split())


def tidy(code):
    """As clang-format writes it."""
    code = re.sub(r"\s+([*&]+)(?=\w)", r"\1 ", code)
    code = re.sub(r"\s+([*&]+)", r"\1", code)
    return code.replace("< ", "<").replace(" >", ">").strip()


# --- signatures

def template_head(entity):
    parameters = entity.find("templateparamlist")
    if parameters is None:
        return ""
    written = []
    for p in parameters:
        kind, name, default = flat(p.find("type")), flat(p.find("declname")), flat(p.find("defval"))
        written.append(tidy(kind) + (f" {name}" if name else "") + (f" = {default}" if default else ""))
    return f"template <{', '.join(written)}>\n"


def signature(member, source):
    """As in the header for a function; `source` has the header's lines."""
    kind, name = member.get("kind"), member.findtext("name")
    head, type_ = template_head(member), tidy(flat(member.find("type")))
    if kind == "typedef":
        return f"{head}using {name} = {type_};"
    if kind == "variable":
        static = "static " if member.get("static") == "yes" and "static" not in type_ else ""
        return f"{head}{static}{type_} {name}{initializer(member)};"
    return declaration(source, int(member.find("location").get("line")) - 1)


def declaration(source, line):
    """The declaration of the function that is named in this line, without its body."""
    first = line
    while not re.search(r"(^\s*(//.*)?|[;{}:]|^ \*/|\*/|^#.*)$", source[first - 1].rstrip()):
        first -= 1
    code = "\n".join(source[first:])
    depth = 0
    for at, c in enumerate(code):
        depth += (c in "([") - (c in ")]")
        is_initializer = c == ":" and code[at - 1].isspace() and code[at + 1] != ":"
        if depth == 0 and (c in ";{" or is_initializer):
            break
    code = re.sub(r"\[\[[^]]*\]\] ?|HEAPWRIGHT_EXPORT |\binline ", "", code[:at])
    return textwrap.dedent(code).strip() + ";"


def initializer(member):
    """Only what is short: the value of a constant, not a function that makes it."""
    value = flat(member.find("initializer"))
    return "" if len(value) > 60 else f" {value}" if value.startswith("=") else value


# --- the model

@dataclass
class Page:
    name: str
    headers: list
    entities: list = field(default_factory=list)  # (line, markdown)


class Reference:
    def __init__(self, project: Path, xml: Path):
        self.project = project
        self.header_at = {str(place(project, header)): header for header in all_headers()}
        self.sources = {header: place(project, header).read_text().splitlines() for header in all_headers()}
        self.missing = []
        self.pages = {}
        self.page_of = {}
        for pages in CHAPTERS.values():
            for name, headers in pages.items():
                page = self.pages[name] = Page(name, headers)
                for header in headers:
                    self.page_of[header] = page
        self.compounds = {}
        for file in sorted(xml.glob("*.xml")):
            root = ET.parse(file).getroot()
            for compound in root.findall("compounddef"):
                self.compounds[compound.get("id")] = compound

    def header_of(self, entity):
        location = entity.find("location")
        return self.header_at.get(location.get("file")) if location is not None else None

    def signature(self, member):
        if self.is_from_base(member):
            member = next(m for c in self.compounds.values() if c.findtext("compoundname") == "heapwright::forwards"
                          for m in c.iter("memberdef") if m.findtext("name") == member.findtext("name"))
        return signature(member, self.sources[self.header_of(member)])

    def is_from_base(self, member):
        source = self.sources.get(self.header_of(member), [])
        return source and source[self.line_of(member) - 1].lstrip().startswith("using base::")

    def line_of(self, entity):
        return int(entity.find("location").get("line"))

    def is_public(self, entity, name):
        header = self.header_of(entity)
        return header in self.page_of and (header not in SOME or name.split("::")[0] in SOME[header])

    def need(self, entity, name):
        """The text of an entity, which must be there."""
        text = description(entity)
        if not text:
            self.missing.append(f"{place(self.project, self.header_of(entity))}:{self.line_of(entity)}: {name} has no docstring")
        return text

    # A group is a list of declarations with one text.

    def groups(self, members, scope):
        last_line = -2
        group, text = [], ""
        for member in sorted(members, key=self.line_of):
            name = member.findtext("name")
            own = description(member)
            begin = self.line_of(member)
            follows = group and begin - last_line <= 1 + bool(template_head(member))
            if not own and not follows and self.explains_itself(member, name):
                text_needed = ""
            elif not own and not follows:
                text_needed = self.need(member, f"{scope}{name}")
            else:
                text_needed = own
            if not own and follows:
                group.append(member)
            else:
                if group:
                    yield group, text
                group, text = [member], text_needed
            last_line = max(begin, int(member.find("location").get("bodyend") or -1))
        if group:
            yield group, text

    def explains_itself(self, member, name):
        arguments = flat(member.find("argsstring"))
        return arguments.endswith(("=delete", "=default")) or name.startswith("~") or name == "operator=="

    def is_shown(self, member, class_name):
        name, arguments = member.findtext("name"), flat(member.find("argsstring"))
        if member.get("prot") != "public" or member.get("kind") == "friend" and not description(member):
            return False
        if flat(member.find("type")) == "friend" or self.is_from_base(member) and not description(member):
            return False
        # Copies and moves are told in the text of the class.
        if arguments.endswith("=delete") or (name.startswith(("~", "operator=")) and not description(member)):
            return False
        return True

    def table_of(self, rows):
        out = ["| name | type, default | |", "|---|---|---|"]
        for member in rows:
            kind = tidy(flat(member.find("type")).replace("constexpr ", "").replace("static ", "")).replace("|", "\\|")
            kind += flat(member.find("argsstring"))
            out.append(f"| `{member.findtext('name')}` | `{kind}{initializer(member)}` | {one_line(member)} |")
        return "\n".join(out)

    def class_text(self, compound, level):
        name = compound.findtext("compoundname").removeprefix("heapwright::")
        scope = name.split("<")[0]
        mark = "#" * level
        kind = compound.get("kind")
        lines = [f"{mark} {name}", f"```cpp\n{template_head(compound)}{kind} {name.split('::')[-1]};\n```"]
        lines.append(self.need(compound, name))
        for base in compound.findall("basecompoundref"):
            base_name = base.text.removeprefix("heapwright::").split("<")[0].strip()
            if base.get("prot") != "public":
                continue
            target = self.compounds.get(base.get("refid"))
            if target is not None and self.header_of(target) in self.page_of:
                page = self.page_of[self.header_of(target)].name
                what = "Passes on what its parts can do, beyond what stands here" if base_name == "forwards" else "Has all of"
                lines.append(f"{what}: [{base_name}]({page}.md).")
        members = [m for section in compound.findall("sectiondef") for m in section.findall("memberdef")
                   if self.is_shown(m, name)]
        fields = sorted((m for m in members if m.get("kind") == "variable"), key=self.line_of)
        if fields:
            for member in fields:
                self.need(member, f"{scope}::{member.findtext('name')}")
            lines.append(self.table_of(fields))
        others = [m for m in members if m not in fields and m.get("kind") != "enum"]
        for enum in (m for m in members if m.get("kind") == "enum"):
            lines += self.enum_text(enum, level + 1, f"{scope}::")
        lines += self.group_texts(others, level + 1, f"{scope}::")
        for inner in compound.findall("innerclass"):
            nested = self.compounds.get(inner.get("refid"))
            if inner.get("prot") == "public" and nested is not None:
                lines += self.class_text(nested, level + 1)
        return lines

    def group_texts(self, members, level, scope):
        lines, before = [], None
        for group, text in self.groups(members, scope):
            name = group[0].findtext("name")
            if name != before:
                lines.append(f"{'#' * level} {scope}{name}")
            before = name
            lines.append("```cpp\n" + "\n".join(self.signature(m) for m in group) + "\n```")
            if text:
                lines.append(text)
        return lines

    def enum_text(self, enum, level, scope):
        name = enum.findtext("name")
        lines = [f"{'#' * level} {scope}{name or 'constants'}", self.need(enum, f"{scope}{name}")]
        rows = ["| value | |", "|---|---|"]
        for value in enum.findall("enumvalue"):
            rows.append(f"| `{value.findtext('name')}` | {one_line(value)} |")
            if not description(value):
                self.missing.append(f"{place(self.project, self.header_of(enum))}:{self.line_of(enum)}: {value.findtext('name')} has no docstring")
        return lines + ["\n".join(rows)]

    def concept_text(self, compound):
        name = compound.findtext("compoundname").removeprefix("heapwright::")
        code = "".join(compound.find("initializer").itertext()).replace("heapwright::", "").strip()
        code = re.sub(r"=\s+", "= ", code.replace("template<", "template <"))
        return [f"## {name}", f"```cpp\n{code};\n```", self.need(compound, name)]

    def collect(self):
        for compound in self.compounds.values():
            kind, name = compound.get("kind"), compound.findtext("compoundname")
            short = name.removeprefix("heapwright::")
            if kind in ("class", "struct", "union", "concept"):
                is_inner = "::" in short.split("<")[0].removeprefix("live::")
                if not is_inner and "<" not in short and self.is_public(compound, short):
                    text = self.concept_text(compound) if kind == "concept" else self.class_text(compound, 2)
                    self.add(compound, text)
            elif kind == "file" or kind == "namespace" and "detail" not in name:
                self.collect_functions(compound, name)

    def add(self, entity, lines):
        page = self.page_of[self.header_of(entity)]
        order = page.headers.index(self.header_of(entity))
        page.entities.append((order, self.line_of(entity), lines))

    def collect_functions(self, compound, name):
        by_header = {}
        scope = name.removeprefix("heapwright").lstrip(":") + "::" if name.startswith("heapwright::") else ""
        for member in (m for s in compound.findall("sectiondef") for m in s.findall("memberdef")):
            if member.get("kind") == "define" or not self.is_public(member, member.findtext("name")):
                continue
            # C functions are members of their file, and those of a namespace are not meant there.
            if compound.get("kind") == "file" and "::" in (member.findtext("qualifiedname") or ""):
                continue
            if member.get("kind") == "enum":
                self.add(member, self.enum_text(member, 2, ""))
            elif "operator new" not in member.findtext("name") and "operator delete" not in member.findtext("name"):
                by_header.setdefault(self.header_of(member), []).append(member)
        for members in by_header.values():
            for group, text in self.groups(members, scope):
                lines = [f"## {scope}{group[0].findtext('name')}", "```cpp\n" + "\n".join(self.signature(m) for m in group) + "\n```"]
                self.add(group[0], lines + ([text] if text else []))

    # --- pages

    def introduction(self, header):
        lines = place(self.project, header).read_text().splitlines()
        comment = [re.sub(r"^(// ?|/\* ?| \* ?)", "", line) for line in
                   itertools.takewhile(lambda line: line.startswith(("//", "/*", " *")), lines)]
        prose = list(itertools.takewhile(lambda text: text.strip() and not text.startswith("  "), comment))
        text = " ".join(prose)
        if not text.endswith(":"):
            return text
        below = itertools.takewhile(lambda text: not text.strip() or text.startswith("  "), comment[len(prose):])
        below = textwrap.dedent("\n".join(below)).strip("\n")
        language = "cpp" if ";" in below else ""
        return f"{text}\n\n```{language}\n{below}\n```"

    def page_text(self, page):
        public = [h for h in page.headers if not h.endswith(".cpp")]
        where = ", ".join(f"`<heapwright/{h}>`" for h in public if h not in SOME or h == page.headers[0])
        where = f"Header: {where}." if public else "Declared by libc, in `<stdlib.h>` and `<malloc.h>`."
        lines = [f"# {page.name}", self.introduction(page.headers[0]), f"{where} [All parts](README.md)"]
        before = None
        for _, _, text in sorted(page.entities, key=lambda e: e[:2]):
            lines += text[1:] if text[0] == before else text
            before = text[0]
        return "\n\n".join(line for line in lines if line) + "\n"

    def index_text(self):
        lines = ["# Reference", "A page for each part, made from the docstrings of the public headers by "
                 "`cmake --build BUILD --target reference`; a test compares. Everything is in the namespace `heapwright`. "
                 "What the parts have in common, and how they are combined, is in [concepts](../concepts.md)."]
        for chapter, pages in CHAPTERS.items():
            rows = ["| | |", "|---|---|"]
            for name in pages:
                rows.append(f"| [{name}]({name}.md) | {first_sentence(self.introduction(pages[name][0]))} |")
            lines += [f"## {chapter}", "\n".join(rows)]
        return "\n\n".join(lines) + "\n"

    def texts(self):
        self.collect()
        empty = [page.name for page in self.pages.values() if not page.entities]
        self.missing += [f"{name}: nothing public in {self.pages[name].headers}" for name in empty]
        self.missing += [f"{place(self.project, front)}: {header} is on no page of {sys.argv[0]}"
                         for front in ("kit.hpp", "heap.hpp")
                         for header in re.findall(r"#include <heapwright/([^>]+)>", place(self.project, front).read_text())
                         if header not in self.page_of.keys() | HIDDEN]
        self.missing += [f"{place(self.project, header)}:{number}: code belongs in backticks, or Doxygen takes <{match[1]} for HTML"
                         for header, lines in self.sources.items() for number, line in enumerate(lines, 1)
                         if (match := UNQUOTED_CODE.match(re.sub("`[^`]*`", "", line)))]
        files = {f"{name}.md": self.page_text(page) for name, page in self.pages.items()}
        return files | {"README.md": self.index_text()}


def first_sentence(text):
    return re.split(r"(?<=\.) (?=[A-Z])|\n", text, maxsplit=1)[0].rstrip(":").replace("|", "\\|")


def doxygen(headers, output):
    done = subprocess.run(["doxygen", "-"], input=DOXYFILE.format(input=" ".join(map(str, headers)), output=output), text=True,
                          cwd=output, capture_output=True)
    if done.returncode != 0 or "warning:" in done.stderr:
        sys.exit(done.stderr)


def main():
    check = "--check" in sys.argv
    project = Path(sys.argv[-1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        doxygen([place(project, header) for header in all_headers()], folder)
        reference = Reference(project, Path(folder) / "xml")
        texts = reference.texts()
    if reference.missing:
        sys.exit("\n".join(sorted(set(reference.missing))))
    to = project / "docs/reference"
    there = {file.name: file.read_text() for file in to.glob("*.md")}
    if not check:
        to.mkdir(exist_ok=True)
        for name in there.keys() - texts.keys():
            (to / name).unlink()
        for name, text in texts.items():
            (to / name).write_text(text)
    elif there != texts:
        for name in sorted(there.keys() | texts.keys()):
            sys.stdout.writelines(difflib.unified_diff(there.get(name, "").splitlines(True), texts.get(name, "").splitlines(True),
                                                       f"docs/reference/{name}", "from the docstrings", n=1))
        sys.exit("the reference is not up to date: cmake --build BUILD --target reference")


if __name__ == "__main__":
    main()
