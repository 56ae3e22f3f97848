"""Man pages, and completions in real shells.

usage: manual_test.py HEAPWRIGHT FOLDER      FOLDER: with man1 and completions
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HEAPWRIGHT = sys.argv.pop(1)
PAGES = Path(sys.argv.pop(1))

# What is typed, and what must be among the words that may follow; then what must not be.
ANYWHERE = [
    (["heapwright", "re"], {"record", "replay"}, {"run"}),
    (["heapwright", "help", "fi"], {"fit"}, set()),
    (["heapwright", "replay", "--m"], {"--memory"}, {"--minutes"}),
    (["heapwright", "fit", "--for", ""], {"time", "memory", "both", "latency"}, {"--for"}),
    (["heapwright", "trace", ""], {"info", "dump", "slice"}, {"app.trace"}),
    (["heapwright", "trace", "info", "a"], {"app.trace"}, {"dump"}),
    (["heapwright", "replay", "app.trace", "--only", "je"], {"jemalloc"}, set()),
    (["heapwright", "trace", "info", "--j"], set(), {"--json"}),
    (["heapwright", "run", "--with", "lib"], {"libmine.so"}, set()),
    (["heapwright", "run", "--with", "ha"], {"hardened"}, set()),
    (["heapwright", "run", "--guard-sample", "100", "my-pro"], {"my-program"}, set()),
    (["heapwright", "run", "--", "my-pro"], {"my-program"}, set()),
    (["heapwright", "info", str(os.getpid())[:-1]], {str(os.getpid())}, set()),
]
LIST = ["heapwright", "replay", "app.trace", "--only", "glibc,je"]


def subcommands():
    overview = subprocess.run([HEAPWRIGHT], capture_output=True, text=True, check=True).stdout
    return re.findall(r"^  ([a-z]+)  ", overview, re.MULTILINE)


class Manual(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name in ("app.trace", "libmine.so"):
            (self.folder / name).touch()
        program = self.folder / "programs/my-program"
        program.parent.mkdir()
        program.write_text("#!/bin/sh\n")
        program.chmod(0o755)
        self.environment = {**os.environ, "HOME": folder.name, "PATH": f"{program.parent}:{os.environ['PATH']}", "TERM": "dumb"}

    def need(self, name):
        if shutil.which(name) is None:
            self.skipTest(f"{name} is not installed")

    def printed(self, *command, **options):
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, env=self.environment, timeout=60, **options)
        self.assertEqual(done.stderr, "", command)
        return done.stdout

    def check(self, follow):
        for typed, expected, others in ANYWHERE:
            with self.subTest(" ".join(typed)):
                found = follow(typed)
                self.assertEqual(expected - found, set(), found)
                self.assertEqual(others & found, set(), found)

    def test_pages_say_what_help_says(self):
        self.need("groff")
        self.assertEqual({p.name for p in (PAGES / "man1").iterdir()}, {"heapwright.1", *(f"heapwright-{s}.1" for s in subcommands())})
        for page in (PAGES / "man1").iterdir():
            shown = re.sub(r"\s+", " ", self.printed("groff", "-man", "-ww", "-Tascii", "-P-cbou", str(page)))
            words = [page.stem.split("-")[1]] if "-" in page.stem else []
            told = subprocess.run([HEAPWRIGHT, *words, "--help"], capture_output=True, text=True, check=True).stdout
            options = re.findall(r"^  ((?:-\w, )?--[a-z-]+)", told, re.MULTILINE)
            self.assertGreaterEqual(len(options), 1)
            for said in options:
                self.assertIn(said, shown, page)
            self.assertIn(f"NAME {page.stem} - ", shown)
            if words:
                self.assertIn("EXIT STATUS", shown)

    def test_the_page_of_recipes_has_all_fields(self):
        self.need("groff")
        shown = re.sub(r"\s+", " ", self.printed("groff", "-man", "-ww", "-Tascii", "-P-cbou", str(PAGES / "man5/heapwright-recipe.5")))
        for said in ("pages.limit = UINT64_MAX bytes in memory for blocks, free ones included", "thread_cache.share_bytes = 1 * MiB", "classes.steps_per_doubling = 8",
                     "concurrency = concurrency_mode::thread_caching", "GIVE_BACK_POLICY", "at_once what is beyond max_free_resident", "hardening.sealed = false"):
            self.assertIn(said, shown)

    def test_bash(self):
        self.need("bash")

        def follow(typed):
            script = f"source {PAGES}/completions/heapwright; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); _heapwright; printf '%s\\n' \"${{COMPREPLY[@]}}\""
            return set(self.printed("bash", "-c", script, "-", *typed).splitlines())

        self.check(follow)
        self.assertEqual(follow(["heapwright", "fit", "--for", "=", "la"]), {"latency"})
        self.assertEqual(follow(["heapwright", "run", "--with", ""]) & {"glibc", "libmine.so"}, {"glibc"})
        self.assertEqual(follow(LIST), {"glibc,jemalloc"})
        self.assertNotIn("glibc,glibc", follow([*LIST[:-1], "glibc,"]))
        self.assertEqual(follow(["heapwright", "run", "--stats", "=", "al"]), {"all"})
        self.assertEqual(follow(["heapwright", "compare", "--with", "mine", "=", "lib"]), {"libmine.so"})

    def test_fish(self):
        self.need("fish")

        def follow(typed):
            line = " ".join(typed)
            told = self.printed("fish", "--no-config", "-c", f"source {PAGES}/completions/heapwright.fish; complete -C {line!r}")
            return {word.split("\t")[0] for word in told.splitlines()}

        self.check(follow)
        self.assertEqual(follow(LIST), {"glibc,jemalloc"})

    def test_zsh(self):
        self.need("zsh")
        # As somebody would: in a terminal, by a key that lists what may follow.
        (self.folder / "functions").mkdir()
        shutil.copy(PAGES / "completions/_heapwright", self.folder / "functions")
        script = self.folder / "in_a_terminal.zsh"
        script.write_text("""
            zmodload zsh/zpty
            zpty shell zsh -f -i
            zpty -w shell "PS1= ; stty -echo rows 200 columns 200; fpath=($1 \\$fpath); autoload -Uz compinit; compinit -u -D; zstyle ':completion:*' list-separator '#'; LISTMAX=100000; setopt nobeep; bindkey '^I' complete-word; bindkey '^X' list-choices; echo is-ready"
            zpty -r shell told '*is-ready*'
            for line in "${@:3}"; do
              zpty -w -n shell $line$'\\x18'
              sleep $2
              while zpty -r -t shell told; do print -rn -- $told; done
              print -rn -- $'\\f'
              zpty -w -n shell $'\\x15'
            done
        """)
        lines = [" ".join(typed) for typed in [*(typed for typed, _, _ in ANYWHERE), LIST]]

        def told_after(seconds):
            return self.printed("zsh", "-f", str(script), str(self.folder / "functions"), str(seconds), *lines).split("\f")

        told = told_after(1)
        if not all(word in shown for (_, expected, _), shown in zip(ANYWHERE, told) for word in expected):
            told = told_after(4)  # the machine is busy

        def follow(typed):
            return set(re.findall(r"[\w.-]+", told[lines.index(" ".join(typed))].replace("\r", "\n"))) - set(typed[:-1])

        self.check(follow)
        self.assertIn("jemalloc", follow(LIST))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[1:])
