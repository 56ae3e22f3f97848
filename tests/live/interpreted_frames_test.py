"""Calls in PHP, Ruby and Perl in `heapwright live`, compared with what each language says of its stack itself.

usage: interpreted_frames_test.py HEAPWRIGHT LIBHEAPWRIGHT [unittest options]
"""
import json
import os
import re
import shutil
import subprocess
import tempfile
import unittest

from watched import LIBRARY, PATIENCE, Watched, clean_environment

# Each keeps blocks, each of a size of its own, from calls of several kinds, and says of each size which calls led to it: function, file, line.
PHP = r'''<?php
namespace App;
$kept = []; $calls_of = [];
function calls() {
    $trace = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    $found = [];
    foreach ($trace as $i => $at) {
        if (!isset($at["line"])) continue;  // called by a function in C
        $by = $trace[$i + 1] ?? ["function" => "{main}"];
        $name = in_array($by["function"], ["include", "require"]) ? "{main}" : $by["function"];
        $found[] = [isset($by["class"]) ? strtok($by["class"], "\0") . "::" . $name : $name, $at["file"], $at["line"]];
    }
    return $found;
}
function keep(int $size) {
    global $kept, $calls_of;
    $kept[] = str_repeat("x", $size); $calls_of[$size] = calls();
}
interface Renders { function render(int $size); }
trait Lists { function listed(int $size) { keep($size); } }
class Shop implements Renders {
    use Lists;
    function render(int $size) {
        keep(
            $size
        );
    }
    static function of(int $size) { (new self)->render($size); }
    function __get($name) { keep(1_700_000); return 1; }
    function __destruct() { global $calls_of; if (!isset($calls_of[1_750_000])) keep(1_750_000); }
    function later(int $size) { return function() use ($size) { keep($size); }; }
}
function generator(int $size) { yield keep($size); }
function recursive($size, $depth) { $depth ? recursive($size, $depth - 1) : keep($size); }
function throws() { $shop = new Shop; throw new \Exception("no"); }
function in_a_fiber(int $size) { \Fiber::suspend(); keep($size); }
keep(1_000_000);
array_map(fn($x) => keep(1_100_000), [1]);
foreach (generator(1_200_000) as $x);
Shop::of(1_300_000);
recursive(1_400_000, 20);
$shop = new Shop;
$shop->value;
$shop->listed(1_500_000);
$shop->later(1_600_000)();
try { throws(); } catch (\Exception) { keep(1_800_000); }
$sorted = [2, 1];
usort($sorted, function($a, $b) { keep(1_900_000); return $a <=> $b; });
eval("\n\n\App\keep(2_000_000);");
$by_name = new class implements Renders { function render(int $size) { keep($size); } };
$by_name->render(2_500_000);
include __DIR__ . "/included.php";
$fiber = new \Fiber("App\in_a_fiber");
$fiber->start(2_200_000);
$fiber->resume();
call_user_func_array([$shop, "render"], [2_300_000]);
preg_replace_callback("/x/", function() { keep(2_400_000); return ""; }, "x");
echo json_encode($calls_of), "\n";
fgets(STDIN);
'''
PHP_INCLUDED = r'''<?php


\App\keep(2_100_000);
'''

RUBY = r'''
require "json"
require "set"
$kept, $calls_of = [], {}
IN_C = %w[each map times sort new call resume load eval]
def calls
  caller_locations(1).reject { |l| IN_C.include?(l.label) }.map { |l| [l.base_label, l.path, l.lineno] }
end
def keep(size)
  $kept << ("x" * size); $calls_of[size] = calls
end
module Lists
  def listed(size) = keep(size)
end
class Shop
  include Lists
  def render(size)
    keep(
      size
    )
  end
  def self.of(size) = new.render(size)
  def <=>(other)
    keep(1_700_000)
    0
  end
  def in_blocks(size) = [1].each { |x| [2].each { |y| keep(size) } }
  define_method(:made) { |size| keep(size) }
  def method_missing(name, size) = keep(size)
  def respond_to_missing?(*) = true
end
class Base
  def self.inherited(derived)
    super
    keep(1_900_000)
  end
end
class Built
  def initialize(size) = keep(size)
end
def recursive(size, depth) = depth > 0 ? recursive(size, depth - 1) : keep(size)
def ensured(size)
  raise "no"
rescue RuntimeError
  keep(size)
end
keep(1_000_000)
[1].each { |x| keep(1_100_000) }
Fiber.new { keep(1_200_000) }.resume
Shop.of(1_300_000)
recursive(1_400_000, 20)
Thread.new { keep(1_500_000) }.join
[Shop.new, Shop.new].sort
Shop.new.in_blocks(1_800_000)
class Derived < Base; end
Shop.new.made(2_000_000)
Shop.new.listed(2_100_000)
Shop.new.missing(2_200_000)
Built.new(2_300_000)
ensured(2_400_000)
eval("\n\nkeep(2_500_000)", binding, "made here", 1)
-> { keep(2_600_000) }.call
Enumerator.new { |y| keep(2_700_000); y << 1 }.next
load File.join(__dir__, "included.rb")
GC.start
keep(2_900_000)
def rückwärts_名前(size) = keep(size)
rückwärts_名前(3_000_000)
puts JSON.generate($calls_of)
STDOUT.flush
STDIN.gets
'''
RUBY_INCLUDED = '''

keep(2_800_000)
'''

PERL = r'''
use strict; use warnings; use utf8; use JSON::PP; use List::Util qw(first reduce); use FindBin;
our (@kept, %calls_of);
sub calls {
  my ($i, @found) = (1);
  my (undef, $file, $line) = caller(0);
  while (my @by = caller($i++)) {
    push @found, [$by[3], $file, $line];
    (undef, $file, $line) = @by;
  }
  # Around a signal handler Perl puts an eval of its own.
  return [(grep { $_->[0] ne "(eval)" || !$main::in_handler } @found), ["(main)", $file, $line]];
}
sub keep {
  my ($size) = @_;
  push @kept, "x" x $size; $calls_of{$size} = calls();
}
package Shop {
  use overload '""' => sub { main::keep(1_700_000); "shop" };
  sub new { return bless {}, shift }
  sub render {
    my ($self, $size) = @_;
    main::keep(
      $size
    );
  }
  sub TIESCALAR { return bless {}, shift }
  sub FETCH { main::keep(1_800_000) unless $main::calls_of{1_800_000}; 1 }
  our $AUTOLOAD;
  sub AUTOLOAD { main::keep($_[1]) if $AUTOLOAD ne "Shop::DESTROY" }
}
sub recursive { my ($size, $depth) = @_; $depth ? recursive($size, $depth - 1) : keep($size) }
keep(1_000_000);
my @mapped = map { keep(1_100_000); 1 } (1);
my $closure = sub { keep(1_200_000) };
$closure->();
Shop->new->render(1_300_000);
recursive(1_400_000, 20);
eval { keep(1_500_000) };
eval "\n\nkeep(1_600_000)";
my $text = Shop->new . "";
tie my $tied, "Shop";
my $fetched = $tied + 1;
my @sorted = sort { keep(1_900_000) unless $calls_of{1_900_000}; $a <=> $b } (2, 1);
sub by_number { keep(2_000_000) unless $calls_of{2_000_000}; return $a <=> $b }
@sorted = sort by_number (3, 1, 2);
first { keep(2_100_000); 1 } (1, 2);
our $in_handler = 0;
local $SIG{ALRM} = sub { $in_handler = 1; keep(2_200_000); $in_handler = 0 };
kill ALRM => $$;
(my $changed = "a") =~ s/a/keep(2_300_000); "b"/e;
Shop->new->not_there(2_400_000);
do "$FindBin::Bin/included.pl";
sub naïve::keeps { keep(2_600_000) }
naïve::keeps();
print encode_json(\%calls_of), "\n";
STDOUT->flush();
my $end = <STDIN>;
'''
PERL_INCLUDED = '''

keep(2_500_000);
'''

# What goes on in each language while its stacks are read: threads, collections of garbage, forks, signals, exceptions, code that comes and goes.
RUBY_STRESS = r'''require "zlib"
def busy(n)
  n.times do |i|
    a = (1..50).map { |k| [k.to_s * 10, { k => "v" * 40 }] }
    a.sort { |x, y| y[0] <=> x[0] }
    begin; raise ArgumentError, "no" if i.odd?; rescue ArgumentError; end
    Fiber.new { Fiber.yield("y" * 100); "z" * 100 }.resume
    eval("def made_#{i % 7}(a) = a.map { |x| x.to_s * 20 }; made_#{i % 7}([1, 2])")
    Zlib::Deflate.deflate("text" * 5000)
    Class.new { def initialize = @a = "b" * 50; define_method(:x) { 1 } }.new.x
  end
end
threads = 4.times.map { Thread.new { busy(30) } }
busy(20)
GC.compact
threads.each(&:join)
GC.auto_compact = true
GC.stress = true
2.times.map { Thread.new { busy(1) } }.each(&:join)
GC.stress = false
Ractor.new { 20.times.map { |i| "r" * (100 + i) }.size }.take
trap("USR1") { $signalled = "u" * 200 }
pids = 3.times.map { fork { Thread.new { busy(5) }.join } }
20.times { Process.kill("USR1", Process.pid) }
pids.each { |pid| Process.wait(pid); raise "child" unless $?.success? }
ObjectSpace.define_finalizer("f".dup, proc { busy(1) })
at_exit { busy(1) }
'''
PHP_STRESS = r'''<?php
function busy($n) {
  for ($i = 0; $i < $n; $i++) {
    $a = array_map(fn($k) => [str_repeat((string)$k, 10), [$k => "v"]], range(1, 50));
    usort($a, fn($x, $y) => $y[0] <=> $x[0]);
    try { if ($i % 2) throw new ArgumentCountError("no"); } catch (Error) {}
    $f = new Fiber(function() { $x = str_repeat("y", 100); Fiber::suspend($x); return (function() { yield from [1, 2]; yield str_repeat("z", 100); })(); });
    $f->start(); $f->resume(); foreach ($f->getReturn() as $v);
    eval("function made_$i" . "_" . mt_rand() . "(\$a) { return array_map(fn(\$x) => str_repeat(\$x, 20), \$a); }");
       preg_replace_callback("/./", fn($m) => $m[0] . "x", str_repeat("a", 100));
    json_decode(json_encode($a)); unserialize(serialize($a));
  }
}
function forever($n) { return $n ? forever($n - 1) : str_repeat("q", 100000); }
busy(50); forever(5000);
$pids = [];
for ($k = 0; $k < 3; $k++) { $p = pcntl_fork(); if ($p == 0) { busy(20); exit(0); } $pids[] = $p; }
foreach ($pids as $p) { pcntl_waitpid($p, $s); if ($s) { echo "child $s\n"; exit(1); } }
pcntl_async_signals(true); pcntl_signal(SIGUSR1, function() { $GLOBALS["usr"] = str_repeat("u", 200); });
for ($k = 0; $k < 20; $k++) { posix_kill(getmypid(), SIGUSR1); busy(1); }
register_shutdown_function(fn() => busy(2));
class D { function __destruct() { array_map(fn($x) => str_repeat("d", $x), [10, 20, 30]); } }
$d = new D;
'''
PERL_STRESS = r'''use strict; use warnings; use threads; use JSON::PP; use List::Util qw(reduce first); use Storable qw(dclone);
sub busy { my $n = shift; for my $i (1 .. $n) {
    my @a = map { [ "$_" x 10, { $_ => "v" x 40 } ] } 1 .. 50;
    @a = sort { $b->[0] cmp $a->[0] } @a;
    eval { die "no" if $i % 2 };
    my $code = eval "package P$i; sub made { return map { \$_ x 20 } \@_ } \\&made"; $code->(1, 2);
    my $d = dclone(\@a); decode_json(encode_json([map { $_->[0] } @a]));
    my $r = reduce { $a . $b } map { "x$_" } 1 .. 50;
    (my $t = "a" x 100) =~ s/a/"b" . lc("C")/ge;
    local $SIG{__WARN__} = sub { my $w = "w" x 100 }; warn "w";
    my $o = bless {}, "D";
} }
sub D::DESTROY { my $x = "d" x 1000 }
sub forever { my $n = shift; no warnings; $n ? forever($n - 1) : "q" x 100000 }
busy(20); forever(3000);
$_->join for map { threads->create(sub { busy(5) }) } 1 .. 3;
my @pids = map { my $p = fork; if (!$p) { busy(5); threads->create(sub { busy(2) })->join; exit 0 } $p } 1 .. 3;
for (@pids) { waitpid $_, 0; die "child $?" if $? }
$SIG{USR1} = sub { our $usr = "u" x 200 }; for (1 .. 20) { kill USR1 => $$; busy(1) }
END { busy(1) }
'''

# What each language calls a function in C that calls back, and who calls whom through it, the innermost first.
THROUGH_C = {
    "php": [("App\\{closure}", "zend_call_function", "{main}"), ("App\\Shop::__get", "zend_std_read_property", "{main}")],
    "ruby": [("Shop#<=>", "rb_ary_sort", "<main>")],
    "perl": [("main::by_number", "Perl_pp_sort", "(main)"), ("Shop::FETCH", "Perl_magic_getpack", "(main)"), ("main::__ANON__", "Perl_despatch_signals", "(main)")],
}
NAMES = {
    "php": {"App\\keep", "App\\Shop::render", "App\\Shop::of", "App\\Renders@anonymous::render", "App\\{closure}", "App\\Shop::App\\{closure}", "eval", "{main}"},
    "ruby": {"Object#keep", "Shop#render", "of", "Lists#listed", "Shop#in_blocks", "block in <main>", "<main>", "Object#rückwärts_名前", "block in <class:Shop>"},
    "perl": {"main::keep", "Shop::render", "Shop::AUTOLOAD", "main::__ANON__", "Shop::__ANON__", "(eval)", "(main)"},
}
PROGRAMS = {
    "php": (["php"], "kept_blocks.php", PHP, "included.php", PHP_INCLUDED),
    "ruby": (["ruby"], "kept_blocks.rb", RUBY, "included.rb", RUBY_INCLUDED),
    "perl": (["/usr/bin/perl"], "kept_blocks.pl", PERL, "included.pl", PERL_INCLUDED),
}


def as_said(language, name):
    """A name as the language's own list of calls has it."""
    if language == "ruby":
        name = re.sub(r"^((block (\(\d+ levels\) )?|rescue |ensure )in )+", "", name)
        return name.partition("#")[2] or name
    return name


def stacks_of_blocks(tree, least):
    """[bytes, stack] of what holds so many bytes, the innermost call first."""
    def stack_of(node):
        while node:
            yield tree["places"][tree["place"][node]]
            node = tree["parent"][node]
    return [(own, list(stack_of(node))) for node, own in enumerate(tree["own"]) if own >= least]


def script_calls(language, stack):
    return [[as_said(language, name), file, line] for name, file, line, module, *_ in stack if file and file == module]


class InterpretedFrames(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return path

    def watched(self, language):
        command, name, text, included, its_text = PROGRAMS[language]
        if not shutil.which(command[0]):
            self.skipTest(f"no {command[0]}")
        self.write(included, its_text)
        return Watched(*command, self.write(name, text), environment={"USE_ZEND_ALLOC": "0", "LANG": "C.UTF-8"})

    def calls_agree(self, language):
        with self.watched(language) as program:
            # Perl numbers the texts that it evaluates.
            calls_of = {int(size): [[name, re.sub(r"^\(eval \d+\)$", "(eval)", file), line] for name, file, line in calls] for size, calls in json.loads(program.hear()).items()}
            program.stop()
            stacks = stacks_of_blocks(program.get("/api/stacks?value=live&most=100000&interpreter=shown&by=line"), 900_000)
            sites = program.get("/api/sites?value=live&most=1000")
        for size, calls in sorted(calls_of.items()):
            # A block is a little longer than what was asked for.
            found = [script_calls(language, stack) for block, stack in stacks if size <= block < size + 8192]
            self.assertIn(calls, found, (language, size))
        names = [[place[0] for place in stack] for _, stack in stacks]
        self.assertLessEqual(NAMES[language], {name for stack in names for name in stack})
        for inner, through, outer in THROUGH_C[language]:
            self.assertTrue(any({inner, through, outer} <= set(n) and n.index(inner) < n.index(through) < n.index(outer) for n in names), (inner, through, outer))
        large = {tuple(sites["places"][site["stack"][site["site"]]][1:3]) for site in sites["sites"] if site["live_bytes"] >= 1_200_000}
        _, file, line = calls_of[1_000_000][0]
        self.assertIn((file, line), large, "the site is the line that allocates")
        self.assertEqual({of for of, _ in large}, {file}, "and no file of the language's own")

    def test_php(self):
        self.calls_agree("php")

    def test_ruby(self):
        self.calls_agree("ruby")

    def test_perl(self):
        self.calls_agree("perl")

    def goes_on(self, *command, text):
        if not shutil.which(command[0]):
            self.skipTest(f"no {command[0]}")
        probe = os.path.join(os.path.dirname(LIBRARY), "libheapwright-probe.so")
        environment = clean_environment(LD_PRELOAD=probe, HEAPWRIGHT_SEGMENT_DIR=self.folder, HEAPWRIGHT_SAMPLE="1", USE_ZEND_ALLOC="0")
        program = self.write("program", text)
        ran = subprocess.run([*command, program], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=4 * PATIENCE)
        self.assertEqual(ran.returncode, 0, ran.stdout[-2000:])

    def test_ruby_goes_on(self):
        self.goes_on("ruby", text=RUBY_STRESS)

    def test_php_goes_on(self):
        self.goes_on("php", text=PHP_STRESS)

    def test_php_with_compiled_code_goes_on(self):
        self.goes_on("php", "-d", "opcache.enable_cli=1", "-d", "opcache.jit_buffer_size=32M", "-d", "opcache.jit=tracing", text=PHP_STRESS)

    def test_perl_goes_on(self):
        self.goes_on("/usr/bin/perl", text=PERL_STRESS)


if __name__ == "__main__":
    import sys
    unittest.main(argv=sys.argv[:1] + sys.argv[3:])
