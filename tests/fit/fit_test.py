"""`heapwright fit`, as a user meets it: programs of which it is known what a recipe can gain, and bad input.

usage: fit_test.py HEAPWRIGHT FITTED_TO
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HEAPWRIGHT, PROGRAM = (os.path.abspath(path) for path in sys.argv[1:3])
PATIENCE = 400


class Fit(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.output = os.path.join(folder.name, "fitted")

    def words(self, *arguments):
        return [HEAPWRIGHT, "fit", "--only", "glibc", "-o", self.output, *arguments]

    def environment(self):
        return {k: v for k, v in os.environ.items() if not k.startswith(("HEAPWRIGHT_", "LD_"))}

    def ran(self, *arguments, code=0):
        done = subprocess.run(self.words(*arguments), capture_output=True, text=True, timeout=PATIENCE, env=self.environment(), stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done

    def fitted(self, *arguments):
        return json.loads(self.ran("--json", "-", *arguments).stdout)

    def fitted_in_some_of(self, tries, *arguments):
        """On a busy machine noise may look like a harm, which is right to refuse."""
        for _ in range(tries):
            found = self.fitted(*arguments)
            if found["verdict"] == "fitted":
                return found
        self.fail(found)

    def compiler_of_two(self, better_with, at_last="exit 0"):
        """A compiler that takes no time: it makes the default of each recipe, but of one with this text in it a malloc that takes less memory.
        What it does before it makes the malloc that was proven: `at_last`."""
        default = os.path.join(os.path.dirname(HEAPWRIGHT), "../lib/libheapwright.so")
        header, better, compiler = (os.path.join(self.folder, name) for name in ("fine.hpp", "libbetter.so", "compiler.sh"))
        with open(header, "w") as file:
            file.write("#include <heapwright/heap/recipe.hpp>\n"
                       "inline constexpr heapwright::recipe fine{.classes = {.steps_per_doubling = 16}, .spans = {.largest_cut = 64 * heapwright::KiB}};\n")
        subprocess.run([HEAPWRIGHT, "build", header, "-o", better], check=True, capture_output=True, timeout=PATIENCE, env=self.environment())
        with open(compiler, "w") as file:
            file.write(f"""#!/bin/bash
made={default}
for word; do
  case $word in
    -fsyntax-only) exit 0 ;;
    */recipe.hpp) grep -qF '{better_with}' "$word" && made={better} ;;
    *.o) object=$word ;;
  esac
  [ "$before" = -o ] && output=$word
  before=$word
done
case $output in
  *.o) echo "$made" >"$output" ;;
  {self.output}/*) {at_last} ;;
  *) cp "$(cat "$object")" "$output" ;;
esac
""")
        os.chmod(compiler, 0o755)
        return compiler

    def test_a_recipe_that_fits(self):
        other = f"{PROGRAM} rounding"
        found = self.fitted_in_some_of(4, "--for", "memory", "--minutes", "0.7", "--input", other, "--", PROGRAM, "rounding")
        self.assertRegex(found["sentence"], r"^peak RSS -\d %")
        peak = found["proof"]["peak_rss"]
        # 264 bytes are 288 under the default, and 272 in a class of their own.
        self.assertLess(peak["ratio"], 0.97)
        self.assertLess(peak["low"], peak["ratio"])
        self.assertLess(peak["ratio"], peak["high"])
        wall = found["proof"]["wall"]
        self.assertTrue(0 < wall["low"] <= wall["ratio"] <= wall["high"], wall)
        self.assertEqual(len(found["proofs"]), 2)
        self.assertEqual([one for one in found["tried"] if one["failure"]], [])
        with open(found["recipe"]) as file:
            header = file.read()
        self.assertRegex(header, r"(?s)// [A-Z].*r\.classes\.(exact = \{.*272|steps_per_doubling = 16)")
        self.assertRegex(header, r"Rounding(, ends of spans| takes)")
        with open(found["report"]) as file:
            self.assertIn('"verdict":"fitted"', file.read())
        ran = subprocess.run([HEAPWRIGHT, "run", "--with", found["library"], "--", PROGRAM, "rounding"], env=self.environment())
        self.assertEqual(ran.returncode, 0)
        built = subprocess.run([HEAPWRIGHT, "build", found["recipe"], "-o", os.path.join(self.folder, "again.so")], capture_output=True, env=self.environment())
        self.assertEqual(built.returncode, 0, built.stderr)

    def test_nothing_to_gain(self):
        found = self.fitted("--for", "memory", "--minutes", "0.2", "--", PROGRAM, "nothing")
        self.assertEqual(found["verdict"], "keep-default", found)
        self.assertTrue(found["sentence"].startswith("keep the default"))
        self.assertIsNone(found["recipe"])
        self.assertIsNone(found["library"])
        self.assertTrue(os.path.exists(found["report"]))
        self.assertEqual(sorted(os.listdir(self.output)), ["report.html"])

    def test_a_program_that_allocates_nothing(self):
        found = self.fitted("--minutes", "0.1", "--", "true")
        self.assertEqual(found["verdict"], "keep-default")
        self.assertEqual(found["tried"], [])
        self.assertTrue(any(note.startswith("nothing could be derived: the recording has no process") for note in found["notes"]), found["notes"])

    def test_what_was_not_tried_is_told(self):
        found = self.fitted("--for", "both", "--minutes", "0.1", "--", PROGRAM, "rounding")
        left = re.search(r"(\d+) of (\d+) candidates were not tried: the search had used up its part of the time", " ".join([found["sentence"], *found["notes"]]))
        self.assertIsNotNone(left, found)
        self.assertEqual(int(left[2]) - int(left[1]), len(found["tried"]))
        self.assertTrue(any(note.startswith(left[0]) for note in found["notes"]), found["notes"])
        if not found["tried"]:
            self.assertEqual(found["sentence"], "keep the default: no recipe was tried")

    def test_a_server(self):
        found = self.fitted_in_some_of(4, "--for", "memory", "--minutes", "0.5", "--driver", "sleep 0.1", "--ready-line", "ready", "--", PROGRAM, "server")
        self.assertLess(found["proof"]["steady_rss"]["ratio"], 0.97)

    def test_the_text(self):
        done = self.ran("--for", "memory", "--minutes", "0.1", "--", PROGRAM, "nothing")
        self.assertRegex(done.stdout, r"\Akeep the default")
        self.assertIn("What the program does", done.stdout)
        self.assertRegex(done.stdout, r"(?m)^heapwright +\d")
        self.assertRegex(done.stderr, r"heapwright: recording the program")

    def test_a_folder_that_cannot_be_made(self):
        missing = os.path.join(self.folder, "missing")
        for output, why in ((f"{missing}/fitted", "No such file or directory"), (os.path.abspath(__file__), "Not a directory"), ("/proc/self/fitted", "No such file or directory")):
            done = subprocess.run([HEAPWRIGHT, "fit", "-o", output, "--", PROGRAM, "nothing"], capture_output=True, text=True, env=self.environment())
            self.assertEqual((done.returncode, done.stderr), (125, f"heapwright: cannot write to {output}: {why}\n"))
        self.assertFalse(os.path.exists(missing))

    def test_a_program_that_fails(self):
        self.assertRegex(self.ran("--minutes", "0.1", "--", "false", code=1).stderr, r"heapwright: under glibc, the command exited with status 1")
        self.ran("--minutes", "0.1", "--", "/no/such/program", code=127)
        self.assertFalse(os.path.exists(self.output), "a folder without results stays")

    def test_a_program_that_never_ends(self):
        done = self.ran("--minutes", "0.1", "--timeout", "0.5", "--", "sleep", "1000", code=1)
        self.assertIn("timed out", done.stderr)

    def test_bad_options(self):
        for words, said in (
            (["--for", "speed", "--", "true"], "none of time, memory, both and latency"),
            (["--for", "latency", "--", "true"], "--figure"),
            (["--minutes", "0", "--", "true"], "not a number from 0.1"),
            (["--input", "", "--", "true"], "--input"), (["--input", "''", "--", "true"], "--input"),
            (["--driver", "true", "--", "true"], "--ready-port"),
            (["--for", "latency", "--driver", "true", "--ready-port", "1", "--figure", "rate:higher=(x)", "--", "true"], "better where it is higher"),
            (["--driver", "true", "--ready-port", "1", "--figure", "wall=(x)", "--", "true"], "wall is measured anyway"),
        ):
            with self.subTest(words):
                self.assertIn(said, self.ran(*words, code=125).stderr)
        file = os.path.join(self.folder, "file")
        open(file, "w").close()
        done = subprocess.run([HEAPWRIGHT, "fit", "-o", file, "--", "true"], capture_output=True, text=True, env=self.environment())
        self.assertEqual(done.returncode, 125)
        self.assertIn("Not a directory", done.stderr)
        done = subprocess.run([HEAPWRIGHT, "fit", "-o", os.path.join(self.folder, "a b"), "--", "true"], capture_output=True, text=True, env=self.environment())
        self.assertEqual(done.returncode, 125)
        self.assertIn("cannot express a path with a space", done.stderr)
        self.assertFalse(os.path.exists(os.path.join(self.folder, "a b")))

    def test_a_compiler_that_is_not_there(self):
        done = self.ran("--for", "memory", "--minutes", "0.3", "--compiler", "no-such-compiler", "--", PROGRAM, "rounding", code=125)
        self.assertIn("no-such-compiler", done.stderr)

    def test_a_candidate_that_cannot_be_built(self):
        """A compiler that takes no recipe but the default; what it says names no file that is gone."""
        compiler = os.path.join(self.folder, "compiler.sh")
        with open(compiler, "w") as file:
            file.write('#!/bin/sh\nfor word; do case $word in */recipe.hpp)\n'
                       '  grep -q "  r[.]" "$word" && { echo "$word:8: error: not this one" >&2; exit 1; } ;; esac; done\nexec c++ "$@"\n')
        os.chmod(compiler, 0o755)
        found = self.fitted("--for", "memory", "--minutes", "0.2", "--compiler", compiler, "--", PROGRAM, "rounding")
        failures = {one["failure"] for one in found["tried"]}
        self.assertEqual(len(failures), 1, found["tried"])
        self.assertRegex(failures.pop(), r"^recipe\.hpp: fitted cannot be built:\s+recipe\.hpp:8: error: not this one$")

    def test_fields_are_changed_one_at_a_time(self):
        """Only where one field is changed, the compiler makes a malloc that takes less."""
        compiler = self.compiler_of_two("growth_divisor")
        for _ in range(4):  # on a busy machine it may seem to take more time, and is not gone on from
            found = self.fitted("--for", "memory", "--minutes", "5", "--compiler", compiler, "--", PROGRAM, "rounding")
            names = [one["name"] for one in found["tried"]]
            step = next(one for one in found["tried"] if "growth_divisor" in one["name"])
            if any(" fields with " in name for name in names):
                break
        self.assertLess(step["replayed_peak_ratio"], 0.97)
        self.assertRegex(step["changes"][-1]["reason"], r"the replayed peak is \d\.\d % lower with it")
        before, behind = names[:names.index(step["name"])], names[names.index(step["name"]) + 1:]
        self.assertTrue([name for name in before if "max_bytes_per_class 4 KiB" in name], names)
        # It goes on from there, through all fields again: none gains more.
        self.assertTrue(behind and all(" fields with " in name for name in behind), names)
        self.assertTrue([name for name in behind if "max_bytes_per_class 4 KiB" in name], names)

    def test_recipes_that_gain_in_replays_alone(self):
        found = self.fitted("--for", "memory", "--minutes", "0.3", "--compiler", self.compiler_of_two("  r."), "--", PROGRAM, "slowed")
        self.assertEqual(found["verdict"], "keep-default", found)
        self.assertTrue(any(one["finalist"] for one in found["tried"]), found["tried"])
        self.assertRegex(found["sentence"], r"^keep the default: no recipe that gains in replays did so in runs of the program without harm; .*: .*wall time")

    def test_what_runs_said_of_a_recipe_is_told_where_another_malloc_is_the_answer(self):
        compiler, better = self.compiler_of_two("  r."), os.path.join(self.folder, "libheapwright.so")
        shutil.copy(os.path.join(self.folder, "libbetter.so"), better)  # by its name the program is not slowed
        for _ in range(4):  # noise may look like a harm
            found = self.fitted("--for", "memory", "--minutes", "0.3", "--compiler", compiler, "--with", f"better={better}", "--", PROGRAM, "slowed")
            if found["verdict"] == "other-allocator":
                break
        self.assertRegex(found["sentence"], r"^for this program better is better than the default: ")
        self.assertTrue(any(note.startswith("no recipe that gains in replays did so in runs of the program without harm; ") for note in found["notes"]), found["notes"])

    def test_an_input_that_fails_is_named(self):
        done = self.ran("--minutes", "0.1", "--input", "sh -c 'exit 3'", "--", PROGRAM, "nothing", code=1)
        self.assertRegex(done.stderr, r"heapwright: input 1 \(sh -c 'exit 3'\): .*status 3")
        self.assertNotIn("recording the program", done.stderr)

    def test_interrupted_while_the_malloc_is_built_it_keeps_the_recipe(self):
        compiler = self.compiler_of_two("  r.", at_last="exec sleep 1000")
        answer = os.path.join(self.folder, "answer.json")
        for _ in range(4):  # noise may look like a harm
            with subprocess.Popen(self.words("--for", "memory", "--minutes", "0.4", "--compiler", compiler, "--json", answer, "--", PROGRAM, "rounding"),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment()) as process:
                for line in process.stderr:
                    if "building the malloc" in line:
                        time.sleep(0.5)
                        process.send_signal(signal.SIGINT)
                        break
                said, _ = process.communicate(timeout=PATIENCE)
            if process.returncode != 0:
                break
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertIn("interrupted while the malloc of the recipe that gained was built and tried", said)
        with open(answer) as file:
            found = json.load(file)
        self.assertEqual((found["verdict"], found["interrupted_by"], found["library"]), ("keep-default", "SIGINT", None))
        self.assertEqual(sorted(os.listdir(self.output)), ["recipe.hpp", "report.html"])
        with open(found["recipe"]) as file:
            self.assertIn("  r.", file.read())
        self.assertTrue(any(f"heapwright build {found['recipe']} -o LIBRARY --check" in note for note in found["notes"]), found["notes"])

    def test_a_malloc_that_cannot_be_built_at_last_does_not_lose_the_recipe(self):
        compiler = self.compiler_of_two("  r.", at_last="echo no room is left >&2; exit 1")
        for _ in range(4):  # noise may look like a harm
            found = self.fitted("--for", "memory", "--minutes", "0.4", "--compiler", compiler, "--", PROGRAM, "rounding")
            if "could not be built" in found["sentence"]:
                break
        self.assertEqual(found["sentence"], "keep the default: the malloc of the recipe that gained could not be built (a note says why)")
        self.assertEqual((found["verdict"], found["library"]), ("keep-default", None))
        self.assertEqual(sorted(os.listdir(self.output)), ["recipe.hpp", "report.html"])
        self.assertTrue(any("no room is left" in note for note in found["notes"]), found["notes"])
        self.assertTrue(any(f"heapwright build {found['recipe']} -o LIBRARY --check" in note for note in found["notes"]), found["notes"])

    def test_a_report_that_cannot_be_written_is_not_announced(self):
        os.mkdir(self.output)
        os.symlink("/dev/full", os.path.join(self.output, "report.html"))
        answer = os.path.join(self.folder, "answer.json")
        done = self.ran("--minutes", "0.1", "--json", answer, "--", PROGRAM, "nothing", code=1)
        self.assertRegex(done.stderr, r"report\.html.*No space left")
        self.assertRegex(done.stdout, r"\Akeep the default")
        self.assertNotIn("report.html", done.stdout)
        with open(answer) as file:
            self.assertIsNone(json.load(file)["report"])

    def test_interrupted_before_the_default_is_replayed_it_tells_no_figures_of_that(self):
        with subprocess.Popen(self.words("--minutes", "5", "--", PROGRAM, "rounding"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment()) as process:
            for line in process.stderr:
                if "replaying the default" in line:
                    process.send_signal(signal.SIGINT)
                    break
            said, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertRegex(said, r"At most 6\d\.\d MiB live at one time")
        self.assertNotRegex(said, r"at most 0 B of memory|some 0 % of its processor time")

    def test_interrupted_at_once_it_says_so_and_leaves_nothing(self):
        # Of a shell script's background command SIGINT is ignored, and one that is sent counts all the same.
        for ignored in (False, True):
            for delay in (0.1, 1):
                with self.subTest(ignored=ignored, delay=delay):
                    begin = (lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)) if ignored else None
                    with subprocess.Popen(self.words("--minutes", "5", "--", "sleep", "1000"), preexec_fn=begin, stderr=subprocess.PIPE, text=True, env=self.environment()) as process:
                        time.sleep(delay)
                        process.send_signal(signal.SIGINT)
                        _, said = process.communicate(timeout=PATIENCE)
                    self.assertEqual(process.returncode, -signal.SIGINT)
                    self.assertIn("heapwright: interrupted before the program was recorded: nothing is known\n", said)
                    self.assertFalse(os.path.exists(self.output))

    def test_interrupted_it_tells_what_it_knows(self):
        report = os.path.join(self.folder, "answer.json")
        with subprocess.Popen(self.words("--for", "memory", "--minutes", "5", "--json", report, "--", PROGRAM, "rounding"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=self.environment()) as process:
            for line in process.stderr:
                if "choosing, round" in line or "trying" in line and "(2 of" in line:
                    break
            time.sleep(0.2)
            process.send_signal(signal.SIGINT)
            said, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, -signal.SIGINT)
        self.assertIn("interrupted before anything was proven", said)
        with open(report) as file:
            found = json.load(file)
        self.assertEqual(found["verdict"], "keep-default")
        self.assertEqual(found["interrupted_by"], "SIGINT")
        self.assertGreater(len(found["tried"]), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
