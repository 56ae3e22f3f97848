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
#include <cstdio>
#include <cwchar>
#include <optional>

#include <fmt/format.h>

#include "../../malloc/windows/child_processes.hpp"
#include "../quantities.hpp"
#include "../statistics.hpp"
#include "command.hpp"
#include "launch.hpp"

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
};

constexpr double tolerance = 0.03;

double seconds_of(const FILETIME& t) {
  return (static_cast<double>(t.dwHighDateTime) * 4294967296.0 + static_cast<double>(t.dwLowDateTime)) / 1e7;
}

/// A file that goes when it is closed. Inherited by what is started.
handle scratch_file() {
  wchar_t folder[MAX_PATH], path[MAX_PATH];
  if (::GetTempPathW(MAX_PATH, folder) == 0 || ::GetTempFileNameW(folder, L"hw", 0, path) == 0)
    throw failure(exit_code::trouble, "no temporary file: " + message_of(::GetLastError()));
  SECURITY_ATTRIBUTES inherited{sizeof inherited, nullptr, TRUE};
  handle file(::CreateFileW(path, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited,
                            CREATE_ALWAYS, FILE_FLAG_DELETE_ON_CLOSE, nullptr));
  if (!file) throw failure(exit_code::trouble, narrow(path) + ": " + message_of(::GetLastError()));
  return file;
}

std::string content_of(HANDLE file) {
  std::string content;
  ::SetFilePointer(file, 0, nullptr, FILE_BEGIN);
  char piece[65'536];
  DWORD n = 0;
  while (::ReadFile(file, piece, sizeof piece, &n, nullptr) != 0 && n > 0) content.append(piece, n);
  return content;
}

struct outcome {
  figures measured{};
  std::string output;
  DWORD code = 0;
};

outcome measure(const words& command, const std::wstring& dll) {
  SECURITY_ATTRIBUTES inherited{sizeof inherited, nullptr, TRUE};
  const handle nothing(
      ::CreateFileW(L"NUL", GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE, &inherited, OPEN_EXISTING, 0, nullptr));
  const handle output = scratch_file();
  // Ends what is left of the program when it is closed.
  const handle job(::CreateJobObjectW(nullptr, nullptr));
  JOBOBJECT_EXTENDED_LIMIT_INFORMATION limits{};
  limits.BasicLimitInformation.LimitFlags = JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE;
  ::SetInformationJobObject(job.get(), JobObjectExtendedLimitInformation, &limits, sizeof limits);
  const launched program = launch(command, dll, {.input = nothing.get(), .output = output.get()}, job.get());
  ::WaitForSingleObject(program.process.get(), INFINITE);

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

plan read_plan(const words& given) {
  plan p;
  p.contestants = {{"as it is", L""}, {"heapwright", path_of_dll()}};
  std::size_t i = 0;
  for (; i < given.size() && given[i].starts_with(L"--"); ++i) {
    if (given[i] == L"--") {
      ++i;
      break;
    }
    const std::wstring value = i + 1 < given.size() ? given[i + 1] : L"";
    if (given[i] == L"--rounds") {
      wchar_t* end = nullptr;
      p.rounds = static_cast<unsigned>(std::wcstoul(value.c_str(), &end, 10));
      if (value.empty() || *end != L'\0' || p.rounds < 2 || p.rounds > 1000)
        throw failure(exit_code::bad_words, "compare: --rounds takes a number from 2 to 1000");
    } else if (given[i] == L"--with") {
      const std::size_t equals = value.find(L'=');
      if (equals == value.npos || equals == 0)
        throw failure(exit_code::bad_words, "compare: --with takes NAME=LIBRARY.dll");
      const std::wstring path = value.substr(equals + 1);
      if (::GetFileAttributesW(path.c_str()) == INVALID_FILE_ATTRIBUTES)
        throw failure(exit_code::bad_words, "compare: no such library: " + narrow(path));
      wchar_t whole[MAX_PATH];
      ::GetFullPathNameW(path.c_str(), MAX_PATH, whole, nullptr);
      const std::string name = narrow(value.substr(0, equals));
      const auto has_name = [&](const contestant& c) { return c.name == name; };
      if (std::any_of(p.contestants.begin(), p.contestants.end(), has_name))
        throw failure(exit_code::bad_words, "compare: two are named " + name);
      p.contestants.push_back({name, whole});
    } else {
      throw failure(exit_code::bad_words, "compare: unknown option " + narrow(given[i]));
    }
    ++i;
  }
  p.command.assign(given.begin() + static_cast<std::ptrdiff_t>(i), given.end());
  if (p.command.empty()) throw failure(exit_code::bad_words, "compare: which program?");
  return p;
}

}  // namespace

int compare(const words& given) {
  plan p = read_plan(given);
  ::SetEnvironmentVariableA(process::children_variable, "1");
  // The warm-up says what a run prints.
  const outcome first = measure(p.command, {});
  if (first.code != 0)
    throw failure(exit_code::trouble,
                  fmt::format("{} exited with status {}, without any library", narrow(p.command[0]), first.code));
  const auto count = static_cast<unsigned>(p.contestants.size());
  for (unsigned round = 0; round <= p.rounds; ++round) {  // the first is to warm up
    std::fprintf(stderr, "\rround %u of %u ", round, p.rounds);
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
  std::fputs("\r                         \r", stderr);
  print_table(p);
  return 0;
}

}  // namespace heapwright::tool
