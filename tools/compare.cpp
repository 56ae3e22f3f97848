// `heapwright compare`: everything is checked before anything is measured; then the experiment, and
// its views.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.hpp"
#include "experiment.hpp"
#include "failure.hpp"
#include "given_allocators.hpp"
#include "line_search.hpp"
#include "output_file.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

/// One line on a terminal, cut to its width and rewritten before each run; elsewhere one line to a
/// round, for logs.
class progress_line {
 public:
  void operator()(unsigned done, unsigned total, unsigned round, const std::string& name) {
    const std::string stage = round == 0 ? "warm-up" : fmt::format("round {}", round);
    if (!terminal_) {
      if (round != last_round_ || done == 0) tell("heapwright: {} ({} of {} runs done)\n", stage, done, total);
      last_round_ = round;
      return;
    }
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
    std::string left;
    if (done >= 2) left = fmt::format(", about {:.0f} s left", spent.count() / done * (total - done));
    const std::string line = fmt::format("[{}/{}] {}: {}{}", done + 1, total, stage, name, left);
    tell("\r\033[K{}", cut_to_columns(line, columns_of(STDERR_FILENO)));
    std::fflush(stderr);
  }
  void clear() const {
    if (terminal_) tell("\r\033[K");
  }

 private:
  bool terminal_ = can_draw(STDERR_FILENO);
  unsigned last_round_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Standard input as given by the user, to be read again by each run; nothing for a terminal or a
/// device.
std::optional<scratch_file> given_input() {
  struct stat about {};
  if (fstat(STDIN_FILENO, &about) != 0) return std::nullopt;
  if (!S_ISREG(about.st_mode) && !S_ISFIFO(about.st_mode) && !S_ISSOCK(about.st_mode)) return std::nullopt;
  pollfd waiting{STDIN_FILENO, POLLIN, 0};
  if (poll(&waiting, 1, 1000) == 0)
    tell("heapwright: reading standard input for the command; give it </dev/null if it needs none\n");
  std::optional<scratch_file> input(std::in_place);
  input->fill_from(STDIN_FILENO);
  return input;
}

std::optional<server_plan> server_of(const compare_options& options) {
  if (options.driver.empty()) return std::nullopt;
  server_plan plan{options.driver,
                   {options.ready_port, options.ready_line, {}, options.ready_timeout_seconds},
                   options.timeout_seconds,
                   options.end_timeout_seconds};
  if (options.ready_port == 0 && options.ready_line.empty())
    throw failure(exit_code::bad_input,
                  "--driver: say how the server shows that it is ready, by --ready-port PORT or --ready-line REGEX");
  if (options.ready_port == 0) plan.ready.pattern = checked_regex("--ready-line", options.ready_line);
  for (const std::string& text : options.figures) {
    driver_figure figure(text);
    if (std::ranges::find(plan.figures, figure.name(), &driver_figure::name) != plan.figures.end())
      throw failure(exit_code::bad_input, fmt::format("--figure: two figures are named {}", figure.name()));
    plan.figures.push_back(std::move(figure));
  }
  return plan;
}

/// "as built" is a row if the program brings an allocator, which only running it shows.
void check_baseline(const std::string& name, const std::vector<allocator>& candidates) {
  if (name == "glibc" || name == "as built") return;
  if (std::ranges::find(candidates, name, &allocator::name) != candidates.end()) return;
  std::string names = "glibc";
  for (const allocator& who : candidates) names += ", " + who.name;
  throw failure(exit_code::bad_input, fmt::format("--baseline {}: not compared here; there are {}", name, names));
}

void check_outputs(const compare_options& options, const program& target) {
  if (!options.json.empty() && !options.html.empty() &&
      (options.json == options.html ||
       (options.json != "-" && options.html != "-" && lead_to_one_file(options.json, options.html))))
    throw failure(exit_code::bad_input, fmt::format("--json and --html both go to {}", options.json));
  std::vector<std::string> needed = options.command;
  needed.push_back(target.path);
  for (const std::string& word : options.with) needed.push_back(given_path::parse(word).path);
  check_replaces_none("--json", options.json, needed);
  check_replaces_none("--html", options.html, needed);
  check_writable(options.json);
  check_writable(options.html);
}

}  // namespace

int compare(const compare_options& options) {
  const auto server = server_of(options);
  const program target = program::resolve(options.command);
  check_outputs(options, target);
  // Before signals are held back: it may wait for ever.
  const auto input = server ? std::nullopt : given_input();
  const given_allocators given("compare", options.with);
  const auto candidates = choose_allocators(target, given.all(), options.only);
  if (candidates.empty()) throw failure(exit_code::bad_input, "nothing to compare glibc with");
  check_baseline(options.baseline, candidates);

  progress_line progress;
  comparison found;
  try {
    found = carry_out({options.command, server, target, candidates, input ? &*input : nullptr, options.rounds,
                       options.same_within_percent / 100, options.baseline, options.timeout_seconds,
                       !options.ignore_output, std::ref(progress)});
  } catch (const interrupted&) {
    progress.clear();
    tell("heapwright: interrupted before a round was complete: nothing is known\n");
    throw;
  } catch (...) {
    progress.clear();
    throw;
  }
  progress.clear();

  const bool colour = wants_colour(STDOUT_FILENO);
  // Files first: who reads the table may have gone.
  std::vector<std::pair<std::string, std::string>> outputs;
  if (!options.json.empty()) outputs.emplace_back(options.json, json_view(found));
  if (!options.html.empty()) outputs.emplace_back(options.html, page_view(found));
  if (options.json != "-" && options.html != "-")
    outputs.emplace_back("-", table_view(found, colour, columns_of(STDOUT_FILENO)));
  write_outputs(outputs, exit_code::judged_no);

  if (found.interrupted_by != 0) throw interrupted{found.interrupted_by};
  int code = EXIT_SUCCESS;
  for (const comparison_row& row : found.rows) {
    if (row.failure.empty() && row.difference.empty()) continue;
    tell("heapwright: under {}: {}\n", row.who.name, row.failure.empty() ? row.difference : row.failure);
    code = exit_code::judged_no;
  }
  return code;
}

}  // namespace heapwright::tool
