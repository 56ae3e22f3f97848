// `heapwright compare`: the program itself, on the malloc of its C library and on others, in
// interleaved rounds (statistics.hpp).
//
// Each run must end with 0 and print what the first run has printed. A library under which it does
// not is out, with the reason in its row; if the program fails without one, the comparison ends.
//
// Figures are those of the program's first process, as Windows keeps them: time by the clock, its
// processor time, the largest working set that it had, page faults.
#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cwchar>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "../../malloc/windows/child_processes.hpp"
#include "../quantities.hpp"
#include "../recipe_build.hpp"
#include "../statistics.hpp"
#include "../terminal.hpp"
#include "command.hpp"
#include "ctrl_c.hpp"
#include "launch.hpp"
#include "scratch_file.hpp"

namespace heapwright::tool {
namespace {

struct metric {
  const char* title;
  std::string (*show)(double);
};

std::string show_faults(double n) { return show_count(n); }

constexpr std::array<metric, 4> metrics{{{"wall time", show_seconds},
                                         {"CPU time", show_seconds},
                                         {"peak memory", show_bytes},
                                         {"page faults", show_faults}}};

using figures = std::array<double, metrics.size()>;

struct contestant {
  std::string name;
  std::wstring dll;  ///< empty: none
  std::vector<figures> rounds{};
  std::string trouble{};  ///< why there are no figures
};

struct plan {
  unsigned rounds = 10;
  std::vector<contestant> contestants;
  words command;
  std::vector<std::unique_ptr<recipe_build>> built;  ///< their mallocs go with them
};

constexpr double tolerance = 0.03;

double seconds_of(const FILETIME& t) {
  return (static_cast<double>(t.dwHighDateTime) * 4294967296.0 + static_cast<double>(t.dwLowDateTime)) / 1e7;
}

struct outcome {
  figures measured{};
  std::string output;
  DWORD code = 0;
};

outcome measure(const words& command, const std::wstring& dll) {
  const handle nothing = no_input();
  const handle output = scratch_file();
  const handle job = ending_job();
  const launched program = launch(command, dll, {.input = nothing.get(), .output = output.get()}, job.get());
  const HANDLE awaited[] = {program.process.get(), awaited_ctrl_c::event()};
  ::WaitForMultipleObjects(2, awaited, FALSE, INFINITE);
  if (awaited_ctrl_c::has_come()) throw interrupted{SIGINT};

  outcome result;
  ::GetExitCodeProcess(program.process.get(), &result.code);
  FILETIME begun{}, ended{}, kernel{}, user{};
  ::GetProcessTimes(program.process.get(), &begun, &ended, &kernel, &user);
  PROCESS_MEMORY_COUNTERS memory{};
  ::K32GetProcessMemoryInfo(program.process.get(), &memory, sizeof memory);
  result.measured = {seconds_of(ended) - seconds_of(begun), seconds_of(kernel) + seconds_of(user),
                     static_cast<double>(memory.PeakWorkingSetSize), static_cast<double>(memory.PageFaultCount)};
  result.output = content_of(output.get());
  return result;
}

/// What is wrong with a run; empty: nothing.
std::string trouble_of(const outcome& ran, const std::string& expected) {
  if (ran.code != 0) return fmt::format("exited with status {}", ran.code);
  return ran.output == expected ? "" : "printed something else";
}

std::vector<double> values(const contestant& c, std::size_t m) {
  std::vector<double> all;
  for (const figures& f : c.rounds) all.push_back(f[m]);
  return all;
}

std::string ratio_text(const ratio_estimate& r) {
  const ratio_verdict said = r.judge(tolerance);
  const std::string word = said == ratio_verdict::same      ? "same"
                           : said == ratio_verdict::unclear ? "unclear"
                                                            : shown_bound(r.ratio);
  return fmt::format("{} ({}-{})", word, shown_bound(r.low), shown_bound(r.high));
}

void print_table(const plan& p) {
  constexpr int name_width = 14, width = 20;
  std::string text = fmt::format("{:<{}}", "", name_width);
  for (const metric& m : metrics) text += fmt::format("{:<{}}", m.title, width);
  text += '\n';
  const contestant& base = p.contestants.front();
  for (const contestant& c : p.contestants) {
    text += fmt::format("{:<{}}", c.name, name_width);
    if (!c.trouble.empty()) {
      text += c.trouble + '\n';
      continue;
    }
    std::string ratios = fmt::format("{:<{}}", "", name_width);
    for (std::size_t m = 0; m < metrics.size(); ++m) {
      text += fmt::format("{:<{}}", metrics[m].show(median(values(c, m))), width);
      const auto ratio = &c == &base ? std::nullopt : paired_ratio(values(c, m), values(base, m));
      ratios += fmt::format("{:<{}}", ratio ? ratio_text(*ratio) : "", width);
    }
    text += '\n';
    if (&c != &base) text += ratios + '\n';
  }
  text += fmt::format(
      "\nMedians of {} rounds; below them the ratio to the first row, in brackets its 95 % confidence interval.\n"
      "same: the interval is within {:g} % of 1. unclear: it holds 1 and is wider; more rounds make it narrower.\n",
      p.rounds, tolerance * 100);
  std::fputs(text.c_str(), stdout);
}

bool is_header(const std::wstring& name) { return name.ends_with(L".hpp") || name.ends_with(L".h"); }

/// The malloc of a recipe's header.
std::wstring build_malloc(const std::wstring& header, plan& p) {
  p.built.push_back(std::make_unique<recipe_build>(narrow(header), "", "", "keep one in the header"));
  const recipe_build& recipe = *p.built.back();
  recipe.check();
  const std::string library = recipe.scratch().file("malloc.dll");
  recipe.make(library);
  show_step("");
  return wide(library);
}

plan read_plan(const words& given) {
  plan p;
  p.contestants = {{"as it is", L""}, {"heapwright", path_of_dll()}};
  std::size_t i = 0;
  for (; i < given.size() && given[i].starts_with(L"--") && given[i] != L"--"; i += 2) {
    const std::wstring value = i + 1 < given.size() ? given[i + 1] : L"";
    if (given[i] == L"--rounds") {
      wchar_t* end = nullptr;
      p.rounds = static_cast<unsigned>(std::wcstoul(value.c_str(), &end, 10));
      if (value.empty() || *end != L'\0' || p.rounds < 2 || p.rounds > 1000)
        throw failure(exit_code::bad_words, "compare: --rounds takes a number from 2 to 1000");
    } else if (given[i] == L"--with") {
      const std::size_t equals = value.find(L'=');
      if (equals == value.npos || equals == 0)
        throw failure(exit_code::bad_words, "compare: --with takes NAME=LIBRARY.dll or NAME=RECIPE.hpp");
      const std::wstring from = value.substr(equals + 1);
      const std::wstring library = is_header(from) ? build_malloc(from, p) : library_named(from, "compare");
      const std::string name = narrow(value.substr(0, equals));
      const auto has_name = [&](const contestant& c) { return c.name == name; };
      if (std::any_of(p.contestants.begin(), p.contestants.end(), has_name))
        throw failure(exit_code::bad_words, "compare: two are named " + name);
      p.contestants.push_back({name, library});
    } else {
      throw failure(exit_code::bad_words, "compare: unknown option " + narrow(given[i]));
    }
  }
  if (i < given.size() && given[i] == L"--") ++i;
  p.command.assign(given.begin() + static_cast<std::ptrdiff_t>(std::min(i, given.size())), given.end());
  if (p.command.empty()) throw failure(exit_code::bad_words, "compare: which program?");
  return p;
}

}  // namespace

int compare(const words& given) {
  const awaited_ctrl_c guard;
  plan p = read_plan(given);
  ::SetEnvironmentVariableA(process::children_variable, "1");
  // The warm-up says what a run prints.
  const outcome first = measure(p.command, {});
  if (first.code != 0)
    throw failure(exit_code::trouble,
                  fmt::format("{} exited with status {}, without any library", narrow(p.command[0]), first.code));
  const auto count = static_cast<unsigned>(p.contestants.size());
  for (unsigned round = 0; round <= p.rounds; ++round) {  // the first is to warm up
    show_step(fmt::format("round {} of {}", round, p.rounds));
    for (const unsigned which : order_of_round(round, count)) {
      contestant& c = p.contestants[which];
      if (!c.trouble.empty()) continue;
      try {
        const outcome ran = measure(p.command, c.dll);
        c.trouble = trouble_of(ran, first.output);
        if (round > 0) c.rounds.push_back(ran.measured);
      } catch (const failure& f) {
        c.trouble = f.what();
      }
      if (which == 0 && !c.trouble.empty())
        throw failure(exit_code::trouble, fmt::format("{}, without any library: {}", narrow(p.command[0]), c.trouble));
    }
  }
  show_step("");
  print_table(p);
  return 0;
}

}  // namespace heapwright::tool
