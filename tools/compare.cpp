// `heapwright compare`: everything is checked before anything is measured; then the experiment, and
// its views.
#include <algorithm>
#include <cstdlib>
#include <functional>

#include <fmt/format.h>
#include <unistd.h>

#include "commands.hpp"
#include "experiment.hpp"
#include "failure.hpp"
#include "given_allocators.hpp"
#include "given_input.hpp"
#include "given_server.hpp"
#include "output_file.hpp"
#include "progress_line.hpp"
#include "terminal.hpp"

namespace heapwright::tool {
namespace {

/// "as built" is a row if the program brings an allocator, which only running it shows.
void check_baseline(const std::string& name, const std::vector<allocator>& candidates) {
  if (name == "glibc" || name == "as built") return;
  if (std::ranges::find(candidates, name, &allocator::name) != candidates.end()) return;
  std::string names = "glibc";
  for (const allocator& who : candidates) names += ", " + who.name;
  throw failure(exit_code::bad_input, fmt::format("--baseline {}: not compared here; there are {}", name, names));
}

void check_outputs(const compare_options& options, const program& target) {
  std::vector<std::string> needed = options.command;
  needed.push_back(target.path);
  for (const std::string& word : options.with) needed.push_back(given_path::parse(word).path);
  check_json_and_html(options.json, options.html, needed);
}

/// To stderr: what is wrong with a row.
void tell_trouble(const comparison_row& row, const std::string& why) {
  tell("heapwright: under {}: {}\n", row.who.name, why);
}

}  // namespace

int compare(const compare_options& options) {
  const auto server = given_server(options.server, options.timeout_seconds);
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
  } catch (const interrupted_early& by) {
    progress.clear();
    const auto is_file = [](const std::string& path) { return !path.empty() && path != "-"; };
    const bool has_failed = std::ranges::any_of(by.rows, [](const comparison_row& r) { return !r.failure.empty(); });
    tell("heapwright: interrupted before a round was complete: nothing is known{}{}\n",
         has_failed ? " but what has failed" : "",
         is_file(options.json) || is_file(options.html) ? ", and no file is written" : "");
    for (const comparison_row& row : by.rows)
      if (!row.failure.empty()) tell_trouble(row, row.failure);
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
    tell_trouble(row, row.failure.empty() ? row.difference : row.failure);
    code = exit_code::judged_no;
  }
  return code;
}

}  // namespace heapwright::tool
