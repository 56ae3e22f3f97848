// `heapwright top`: the heap of a running process, from outside, and what changes in it.
//
// The process tells nothing and is not stopped: its record (process_record.hpp) is read from its
// memory. On a terminal each look replaces the one before; elsewhere they follow each other.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <io.h>

#include <heapwright/malloc/process_record.hpp>

#include "../heap_reading.hpp"
#include "../heap_text.hpp"
#include "../quantities.hpp"
#include "command.hpp"
#include "ctrl_c.hpp"
#include "other_process.hpp"

namespace heapwright::tool {
namespace {

/// Throws `failure` where it has none.
process_record read_record(const other_process& process) {
  for (const auto& [library, there] : process.exports_named("heapwright_record")) {
    process_record record{};
    if (!process.read(there, &record, sizeof record) || record.layout != process_record::current_layout ||
        record.bytes != sizeof record ||
        std::memcmp(record.magic, process_record::expected_magic, sizeof record.magic) != 0)
      throw other_version_in(process, library);
    if (record.figures != nullptr) return record;  // a second copy, which does nothing, has none
  }
  throw no_malloc_in(process);
}

/// Where the cursor of the terminal can be moved.
bool is_terminal() {
  const HANDLE output = ::GetStdHandle(STD_OUTPUT_HANDLE);
  DWORD mode = 0;
  return ::_isatty(::_fileno(stdout)) != 0 && ::GetConsoleMode(output, &mode) != 0 &&
         ::SetConsoleMode(output, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0;
}

std::size_t lines_of_terminal() {
  CONSOLE_SCREEN_BUFFER_INFO about{};
  if (::GetConsoleScreenBufferInfo(::GetStdHandle(STD_OUTPUT_HANDLE), &about) == 0) return 24;
  return static_cast<std::size_t>(std::max(about.srWindow.Bottom - about.srWindow.Top + 1, 2));
}

std::string change_text(std::uint64_t now, std::optional<std::uint64_t> before) {
  if (!before || now == *before) return "";
  const std::uint64_t by = now > *before ? now - *before : *before - now;
  return fmt::format(" ({}{})", now > *before ? "+" : "-", show_bytes(static_cast<double>(by)));
}

struct look {
  heap_reading heap;
  std::uint64_t working_set = 0;
};

std::vector<std::string> lines_of(const other_process& process, const process_record& record, const look& now,
                                  const std::optional<look>& before) {
  const auto shown = [](std::uint64_t bytes) { return show_bytes(static_cast<double>(bytes)); };
  const std::uint64_t outside = now.heap.outside();
  std::vector<std::string> lines{
      fmt::format("{}  heapwright {:.31} ({:.31})", process.name(), record.version, record.build),
      fmt::format("blocks and thread caches {}{}   large blocks {}   working set {}{}   threads {}", shown(outside),
                  change_text(outside, before ? std::optional(before->heap.outside()) : std::nullopt),
                  shown(now.heap.large), shown(now.working_set),
                  change_text(now.working_set, before ? std::optional(before->working_set) : std::nullopt),
                  now.heap.threads)};
  for (std::string& line : lines_of_heap(now.heap)) lines.push_back(std::move(line));
  lines.emplace_back();
  for (std::string& line : lines_of_classes(now.heap)) lines.push_back(std::move(line));
  return lines;
}

struct top_options {
  words process;
  DWORD pause_ms = 1000;
  unsigned long looks = 0;  ///< 0: until it ends
};

top_options read_options(const words& given) {
  top_options options;
  for (std::size_t i = 0; i < given.size(); ++i) {
    if (given[i] != L"--every" && given[i] != L"--looks") {
      options.process.push_back(given[i]);
      continue;
    }
    const std::string name = narrow(given[i]);
    wchar_t* end = nullptr;
    const unsigned long value = ++i < given.size() ? std::wcstoul(given[i].c_str(), &end, 10) : 0;
    constexpr unsigned long most = 86'400;
    if (end == nullptr || *end != L'\0' || value < 1 || value > most)
      throw failure(exit_code::bad_words, fmt::format("top: {} takes a number from 1 to {}", name, most));
    if (name == "--every")
      options.pause_ms = static_cast<DWORD>(value * 1000);
    else
      options.looks = value;
  }
  return options;
}

}  // namespace

int top(const words& given) {
  const top_options options = read_options(given);
  const awaited_ctrl_c guard;
  const other_process process(options.process, "top");
  const process_record record = read_record(process);
  const auto read = [&](const void* there, void* into, std::size_t bytes) { return process.read(there, into, bytes); };
  const bool replaces = is_terminal();
  std::optional<look> before;
  for (unsigned long n = 1;; ++n) {
    auto heap = read_heap(record, read);
    if (!heap) break;
    PROCESS_MEMORY_COUNTERS memory{};
    ::K32GetProcessMemoryInfo(process.get(), &memory, sizeof memory);
    const look now{std::move(*heap), memory.WorkingSetSize};
    std::vector<std::string> lines = lines_of(process, record, now, before);
    if (replaces && lines.size() >= lines_of_terminal()) lines.resize(lines_of_terminal() - 1);
    std::string page = replaces ? "\033[H" : n > 1 ? "\n" : "";
    for (const std::string& line : lines) page += line + (replaces ? "\033[K\n" : "\n");
    if (replaces) page += "\033[J";
    if (std::fwrite(page.data(), 1, page.size(), stdout) != page.size() || std::fflush(stdout) != 0) return 0;
    before = now;
    if (n == options.looks) return 0;
    const HANDLE awaited[] = {process.get(), awaited_ctrl_c::event()};
    const DWORD which = ::WaitForMultipleObjects(2, awaited, FALSE, options.pause_ms);
    if (which == WAIT_OBJECT_0 + 1) return 0;
    if (which == WAIT_OBJECT_0) break;
  }
  if (!before) throw failure(exit_code::trouble, process.name() + " has ended");
  std::fputs((process.name() + " has ended\n").c_str(), stdout);
  return 0;
}

}  // namespace heapwright::tool
