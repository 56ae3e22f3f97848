"""What is public in the headers, and what is missing there."""
import re

from declarations import signature
from doxygen import description, flat
from headers import CHAPTERS, HIDDEN, SOME, all_headers, place

FRONT_DOORS = ("kit.hpp", "heap.hpp")

# Doxygen takes <A> for HTML and drops it.
UNQUOTED_CODE = re.compile(r".*///<? {1,4}(?! ).*\w<[A-Za-z]")


def line_of(entity):
    return int(entity.find("location").get("line"))


def name_of(entity):
    return entity.findtext("compoundname" if entity.tag == "compounddef" else "name").removeprefix("heapwright::")


class Model:
    def __init__(self, project, compounds):
        self.project = project
        self.compounds = compounds
        self.page_of = {header: page for pages in CHAPTERS.values() for page, headers in pages.items() for header in headers}
        self.header_at = {str(place(project, header)): header for header in all_headers()}
        self.sources = {header: place(project, header).read_text().splitlines() for header in all_headers()}
        self.missing = []

    # --- where an entity is

    def header_of(self, entity):
        location = entity.find("location")
        return None if location is None else self.header_at.get(location.get("file"))

    def is_public(self, entity):
        header = self.header_of(entity)
        return header in self.page_of and (header not in SOME or name_of(entity).split("::")[0] in SOME[header])

    # --- what is said of it

    def report(self, header, line, what):
        self.missing.append(f"{place(self.project, header)}:{line}: {what}")

    def text_of(self, entity, name):
        """The docstring, which must be there."""
        text = description(entity)
        if not text:
            self.report(self.header_of(entity), line_of(entity), f"{name} has no docstring")
        return text

    def signature(self, member):
        if self.is_from_base(member):
            member = next(m for c in self.compounds.values() if c.findtext("compoundname") == "heapwright::forwards"
                          for m in c.iter("memberdef") if name_of(m) == name_of(member))
        return signature(member, self.sources[self.header_of(member)])

    def is_from_base(self, member):
        """`using base::name;`: Doxygen gives it the text of the base, and no declaration."""
        source = self.sources.get(self.header_of(member), [])
        return source and source[line_of(member) - 1].lstrip().startswith("using base::")

    def is_shown(self, member):
        """Members that a reader needs. Deleted copies and defaulted destructors are told in the text of the class."""
        name, arguments = name_of(member), flat(member.find("argsstring"))
        needs_text = name.startswith(("~", "operator=")) or member.get("kind") == "friend" or self.is_from_base(member)
        return (member.get("prot") == "public" and not arguments.endswith("=delete") and flat(member.find("type")) != "friend"
                and (not needs_text or description(member) != ""))

    def groups(self, members, scope):
        """Declarations that share a text: lists of them, each with its text."""
        group, text, last_line = [], "", None
        for member in sorted(members, key=line_of):
            own = description(member)
            is_below = last_line is not None and line_of(member) - last_line <= 1 + (member.find("templateparamlist") is not None)
            if is_below and not own:
                group.append(member)
            else:
                if group:
                    yield group, text
                is_default = flat(member.find("argsstring")).endswith("=default")
                group, text = [member], own if is_default else self.text_of(member, scope + name_of(member))
            last_line = max(line_of(member), int(member.find("location").get("bodyend") or -1))
        if group:
            yield group, text

    # --- what is missing beyond that

    def check_headers(self):
        for header, lines in self.sources.items():
            for number, line in enumerate(lines, 1):
                if UNQUOTED_CODE.match(re.sub("`[^`]*`", "", line)):
                    self.report(header, number, "code with <...> belongs in backticks")
        for door in FRONT_DOORS:
            for number, line in enumerate(self.sources[door], 1):
                include = re.match(r"#include <heapwright/([^>]+)>", line)
                if include and include[1] not in self.page_of.keys() | HIDDEN:
                    self.report(door, number, f"{include[1]} is on no page: see cmake/reference/headers.py")
