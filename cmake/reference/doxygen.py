"""Runs Doxygen over headers, and turns descriptions in its XML into Markdown."""
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path

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


def read(headers):
    """What Doxygen knows of the headers: its compounds (classes, concepts, namespaces, files) by their ids."""
    with tempfile.TemporaryDirectory() as folder:
        settings = DOXYFILE.format(input=" ".join(map(str, headers)), output=folder)
        done = subprocess.run(["doxygen", "-"], input=settings, text=True, cwd=folder, capture_output=True)
        if done.returncode != 0 or done.stderr:
            sys.exit("\n".join(dict.fromkeys(done.stderr.splitlines())))
        roots = [ET.parse(file).getroot() for file in sorted(Path(folder, "xml").glob("*.xml"))]
    return {compound.get("id"): compound for root in roots for compound in root.findall("compounddef")}


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
