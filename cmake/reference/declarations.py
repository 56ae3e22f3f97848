"""Declarations as a reader of the header sees them, without attributes and bodies."""
import re
import textwrap

from doxygen import flat

EXPRESSION = re.compile(r"(requires|&&|\|\|)\s+requires\s*(\([^()]*\))?\s*$")


def tidy(code):
    """As clang-format writes it."""
    code = re.sub(r"\s+([*&]+)(?=\w)", r"\1 ", code)
    code = re.sub(r"\s+([*&]+)", r"\1", code)
    return code.replace("< ", "<").replace(" >", ">").strip()


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
        # A requires-expression has braces of its own.
        if c == "{" and depth == 0 and not EXPRESSION.search(code[:at]):
            break
        depth += (c in "([{") - (c in ")]}")
        is_initializer = c == ":" and code[at - 1].isspace() and code[at + 1] != ":"
        if depth == 0 and (c == ";" or is_initializer):
            break
    code = re.sub(r"\[\[[^]]*\]\] ?|HEAPWRIGHT_EXPORT |\binline ", "", code[:at])
    return textwrap.dedent(code).strip() + ";"


def initializer(member):
    """Only what is short: the value of a constant, not a function that makes it."""
    value = flat(member.find("initializer"))
    return "" if len(value) > 60 else f" {value}" if value.startswith("=") else value
