"""Every `Class::member` in the documentation exists: text in backticks tells readers what to search the code for.

usage: documented_names.py PROJECT   prints each name that the code does not have; exit status 1 if there is one

Read are docs/, docs/design/, CONTRIBUTING.md and the READMEs of all folders, outside of blocks of code (documented_code.py
compiles those). A name exists if a class, struct, enumeration or namespace of that name declares the member, itself or in one
that it inherits from or stands for.
"""
import re
import sys
from functools import lru_cache
from pathlib import Path

FOLDERS = ["include", "abi", "malloc", "segment", "probe", "tools", "bench", "tests"]
OTHERS = {"std", "boost"}  # libraries of others: their names are not looked up

# What stands for something else than a name of ours. Each with its page.
EXCEPTIONS = {
    ("docs/live.md", "os::malloc"),               # the Java machine's
    ("docs/java-and-python.md", "Shop::render"),  # a program's
    ("docs/recipes.md", "app::NAME"),             # a placeholder
    ("docs/recipes.md", "CLASS::NAME"),           # a placeholder
}

FENCE = re.compile(r"^(```|~~~).*?^\1\s*$", re.MULTILINE | re.DOTALL)
NAME = re.compile(r"\b[A-Za-z_]\w*(?:<[^<>`]*>)?(?:::~?[A-Za-z_]\w*)+")
KIND = r"\b(?:class|struct|union|enum(?:\s+class|\s+struct)?|namespace)\s+(?:\[\[[^\]]*\]\]\s*|alignas\([^)]*\)\s*)*"


def pages(root: Path):
    files = [root / "CONTRIBUTING.md", *root.glob("docs/*.md"), *root.glob("docs/design/*.md")]
    files += [f for folder in FOLDERS + ["docs", "examples"] for f in (root / folder).rglob("README.md")]
    return [f for f in sorted(set(files)) if not {"reference", "build", "node_modules"} & set(f.relative_to(root).parts)]


def documented(page: Path):
    """(line, name) for each name with :: in backticks."""
    text = FENCE.sub(lambda block: "\n" * block[0].count("\n"), page.read_text())
    for span in re.finditer(r"`([^`]+)`", text):
        for name in NAME.finditer(span[1]):
            yield text.count("\n", 0, span.start()) + 1, name[0]


def code_of(root: Path):
    """All code without comments and literals, which may have braces of their own."""
    noise = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
    files = [f for folder in FOLDERS for f in sorted((root / folder).rglob("*")) if f.suffix in (".hpp", ".cpp", ".h")]
    return "\n".join(noise.sub(" ", f.read_text()) for f in files)


class code:
    def __init__(self, text: str):
        self.text = text
        self.declarations = lru_cache(None)(self.declarations)

    def body(self, begin: int):
        """What stands between the brace at begin and its partner, without what is within further braces."""
        depth, kept = 0, []
        for token in re.finditer(r"[{}]|[^{}]+", self.text[begin:]):
            if token[0] == "}":
                depth -= 1
                if depth == 0:
                    break
            if depth == 1 or token[0] == "{" and depth == 1:
                kept.append(token[0])
            if token[0] == "{":
                depth += 1
                if depth == 2:
                    kept.append("{")
        return "".join(kept)

    def declarations(self, owner: str):
        """The bodies of all that is called so, and the names of what they inherit from or stand for."""
        bodies, others = [], set()
        for found in re.finditer(KIND + rf"(?:\w+::)*{owner}\b([^;{{}}()]*)\{{", self.text):
            bodies.append(self.body(found.end() - 1))
            bases = found[1].split(":", 1)
            if len(bases) == 2:
                others.update(re.findall(r"(?:public|private|protected|,|^)\s*(?:\w+::)*(\w+)", bases[1]))
        for found in re.finditer(rf"\busing\s+{owner}\s*=\s*([^;]+);", self.text):
            others.update(re.findall(r"\w+", found[1]))
        return bodies, others - {owner}

    def has(self, owner: str, member: str, seen=frozenset()):
        if re.search(rf"\b{owner}(?:<[^<>;]*>)?::{re.escape(member)}\s*\([^;]*?\)[^;]*?\{{", self.text):
            return True
        bodies, others = self.declarations(owner)
        declared = re.compile(rf"(?<![.>\w]){re.escape(member)}\s*(?:[({{=;\[,:]|\}}|$)")
        if any(declared.search(body) for body in bodies):
            return True
        return any(self.has(other, member, seen | {owner}) for other in others if other not in seen)


def main():
    root = Path(sys.argv[1])
    all_code = code(code_of(root))
    checked, wrong, unused = 0, [], set(EXCEPTIONS)
    for page in pages(root):
        where = page.relative_to(root).as_posix()
        for line, name in documented(page):
            parts = re.sub(r"<[^<>]*>", "", name).removeprefix("heapwright::").split("::")
            if len(parts) < 2 or parts[0] in OTHERS:
                continue
            pair = f"{parts[-2]}::{parts[-1]}"
            checked += 1
            if (where, pair) in EXCEPTIONS:
                unused.discard((where, pair))
            elif not all_code.has(parts[-2], parts[-1]):
                wrong.append(f"{where}:{line}: the code has no {pair}")
    wrong += [f"{where}: {pair} is no longer in it: take it off the exceptions" for where, pair in sorted(unused)]
    print(*wrong, sep="\n")
    print(f"{checked} names, {len(wrong)} wrong")
    sys.exit(1 if wrong or checked < 15 else 0)


if __name__ == "__main__":
    main()
