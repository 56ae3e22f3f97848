"""Each relative link of the installed documents leads to an installed file or folder.

usage: installed_links.py FOLDER     PREFIX/share/doc/heapwright
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1]).resolve()
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
# Code is no link: `[](int)`.
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)

pages = sorted(ROOT.rglob("*.md"))
if len(pages) < 10:
    sys.exit(f"{ROOT} has only {len(pages)} documents")
dead = []
for page in pages:
    for target in LINK.findall(CODE.sub("", page.read_text())):
        path = target.partition("#")[0]
        if not path or re.match(r"[a-z]+:", path):
            continue
        leads_to = (page.parent / path).resolve()
        if not leads_to.is_relative_to(ROOT) or not leads_to.exists():
            dead.append(f"{page.relative_to(ROOT)}: {target} is not installed")
sys.exit("\n".join(dead) or 0)
