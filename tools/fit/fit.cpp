// `heapwright fit`: one command, one answer.
//
//   look     the command runs under the default and glibc, three times, and each other input
//            twice: whether they work, and how long it takes
//   record   `heapwright record` runs it once more; the trace becomes a plan, and is counted
//   derive   candidates from what is seen (levers), each built and replayed beside the default
//   choose   the finalists run the real program, in interleaved rounds
//   prove    the best of them, the default and other mallocs run it, in rounds that none of the
//            choices has seen
//   answer   the recipe, its malloc, the report; or that nothing is better
//
// Each stage has its share of the time that the user gives. Interrupted, what is complete is told.
// Nothing that is wrong with a recipe ends the fit: it is told beside the recipe.
#include "fit.hpp"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include "experiment.hpp"
#include "failure.hpp"
#include "fit_report.hpp"
#include "given_allocators.hpp"
#include "given_input.hpp"
#include "interruptible.hpp"
#include "output_file.hpp"
#include "plan_builder.hpp"
#include "printable.hpp"
#include "progress_line.hpp"
#include "recipe_trials.hpp"
#include "terminal.hpp"
#include "trace_progress.hpp"

namespace heapwright::tool {
namespace {

namespace files = std::filesystem;
using clock = std::chrono::steady_clock;

/// A trace grows with the program. Of a longer one the beginning has to do.
constexpr std::uint64_t most_trace_bytes = 64 << 20;

/// More would leave few rounds to each.
constexpr std::size_t most_finalists = 4;

/// Parts of the time that the user gives.
constexpr double part_of_search = 0.35, part_of_choice = 0.2;

/// More rounds tell little more. The time that they would take is the search's.
constexpr unsigned most_rounds_of_choice = 7, most_rounds_of_proof = 15;

/// The time that the user gives.
class time_budget {
 public:
  explicit time_budget(double minutes) : all_(minutes * 60) {}

  [[nodiscard]] double all() const { return all_; }
  [[nodiscard]] double spent() const { return std::chrono::duration<double>(clock::now() - begin_).count(); }
  [[nodiscard]] double left() const { return std::max(all_ - spent(), 0.0); }

 private:
  double all_;
  clock::time_point begin_ = clock::now();
};

/// On a terminal the stage is shown by what it does; elsewhere a line says that it begins.
void tell_stage(const std::string& what) {
  if (can_draw(STDERR_FILENO))
    show_step(what);
  else
    tell("heapwright: {}\n", what);
}

/// One command that is measured: the program's own, or another input.
struct measured_input {
  std::vector<std::string> command;
  program target;
  std::optional<server_plan> server;
};

class fitting {
 public:
  fitting(const fit_options& options, program target, const scratch_file* input, const std::vector<allocator>& given,
          fit_report& into)
      : options_(options), standard_input_(input), budget_(options.minutes), found_(into) {
    inputs_.push_back({options.command, std::move(target), given_server(options.server, limit())});
    for (const std::vector<std::string>& words : options.inputs) {
      measured_input other = inputs_.front();
      if (other.server) {
        other.server->driver = words.front();
      } else {
        other.command = words;
        other.target = program::resolve(words);
      }
      inputs_.push_back(std::move(other));
    }
    peers_ = choose_allocators(inputs_.front().target, given, options.only);
    std::erase_if(peers_, [](const allocator& who) { return who.name == default_row; });
  }

  /// What is complete when it is interrupted is in the report.
  void run() {
    try {
      search_.emplace(plan_, options_.compiler);
      look();
      if (record()) {
        search();
        choose();
      }
      prove();
      answer();
    } catch (const interrupted& by) {
      end_early(by.signal);
    } catch (const failure&) {
      if (!interruptible::is_noted()) throw;
      end_early(interruptible::noted());
    }
    show_step("");
    if (search_) found_.tried.assign(search_->tried().begin(), search_->tried().end());
    found_.seconds = budget_.spent();
  }

  /// The recipe that was proven.
  [[nodiscard]] recipe_build proven() const {
    return {search_->write_header(*found_.fitted, {}), fitted_row, options_.compiler, ""};
  }

  /// Throws `failure` where the malloc does not pass its trials.
  void check(const std::string& library, const recipe_build& recipe) {
    if (has_trials())
      try_out(library, recipe);
    else
      found_.notes.emplace_back(
          "the malloc was not tried by conformance and stress tests, which this copy was built without: "
          "heapwright build --check does it where they are");
    found_.seconds = budget_.spent();
  }

 private:
  /// Of one run.
  [[nodiscard]] double limit() const {
    return options_.timeout_seconds > 0 ? options_.timeout_seconds : budget_.all() / 3;
  }

  comparison measure(const measured_input& what, const std::vector<allocator>& candidates, unsigned rounds,
                     const char* stage) {
    progress_line progress(stage);
    show_step("");
    comparison measured = [&] {
      try {
        return carry_out({what.command, what.server, what.target, candidates, standard_input_, rounds, 0.03,
                          default_row, limit(), !options_.ignore_output, std::ref(progress)});
      } catch (...) {
        progress.clear();
        throw;
      }
    }();
    progress.clear();
    return measured;
  }

  [[nodiscard]] allocator the_default() const { return {default_row, own_library()}; }

  /// "input 1 (./program other.txt): "; empty for the command itself.
  [[nodiscard]] std::string name_of_input(std::size_t number) const {
    return number == 0 ? "" : fmt::format("input {} ({}): ", number, shown_command(options_.inputs[number - 1]));
  }

  /// Under the default and glibc. Throws `failure` where the input does not work.
  comparison look_at(std::size_t number, unsigned rounds) {
    const std::string stage =
        number == 0 ? "looking at the program" : fmt::format("looking at the program on input {}", number);
    try {
      comparison now = measure(inputs_[number], {the_default()}, rounds, stage.c_str());
      if (now.interrupted_by != 0) throw interrupted{now.interrupted_by};
      if (const comparison_row& row = now.base(); row.who.name != default_row || !row.failure.empty())
        throw failure(exit_code::judged_no,
                      fmt::format("under {}, the command {}", default_row,
                                  now.rows.back().failure.empty() ? "failed" : now.rows.back().failure));
      return now;
    } catch (const failure& why) {
      throw failure(why.code(), name_of_input(number) + why.what());
    }
  }

  void look() {
    const auto begin = clock::now();
    const comparison now = look_at(0, 2);
    const comparison_row& row = now.base();
    const std::size_t runs = (now.rounds + 1) * now.rows.size();  // one to warm up
    seconds_of_run_ = std::chrono::duration<double>(clock::now() - begin).count() / static_cast<double>(runs);
    std::vector<double> processor;
    for (const measurement& m : row.rounds) processor.push_back(m.user_seconds + m.system_seconds);
    processor_seconds_ = median(processor);
    // Before minutes are spent on a recipe that has to hold there.
    for (std::size_t i = 1; i < inputs_.size(); ++i) (void)look_at(i, 1);
  }

  /// False: there is nothing to derive a recipe from; the report says why.
  bool record() {
    tell_stage("recording the program");
    const std::string trace = traces_.file("app.trace");
    std::vector<std::string> words{files::read_symlink("/proc/self/exe"), "record", "-o", trace, "--max-bytes",
                                   std::to_string(most_trace_bytes),      "--"};
    words.insert(words.end(), options_.command.begin(), options_.command.end());
    const awaited_signals signals{SIGCHLD, SIGINT, SIGTERM, SIGHUP};
    // Waiting for the recorder takes a program several times its time, at the worst.
    const job what{words, "", standard_input_, 10 * limit()};
    std::string trouble;
    if (inputs_.front().server) {
      server_plan server = *inputs_.front().server;
      server.figures.clear();
      trouble = run_server(what, server, signals).trouble;
    } else {
      const run_result ran = run_measured(what, signals);
      trouble = ran.trouble();
      if (const std::string said = ran.errors.tail(3); !trouble.empty() && !said.empty()) trouble += ": " + said;
    }
    if (!trouble.empty() && !plan_.has_room())
      throw failure(exit_code::bad_input,
                    fmt::format("while it was recorded: no room is left in {}, where the trace goes; set TMPDIR",
                                scratch_place()));
    if (!trouble.empty())
      throw failure(exit_code::judged_no, fmt::format("while it was recorded, the command {}", trouble));
    return plan(trace, signals);
  }

  bool plan(const std::string& trace, const awaited_signals& signals) {
    const auto told = trace_progress("reading the recording", signals);
    try {
      plan_builder builder(trace, std::nullopt, told);
      builder.build(plan_.fd(), told, false);
      if (builder.process().ended.reason.find("as asked") != std::string::npos)
        found_.notes.push_back("only the beginning of the program was recorded: " + builder.process().ended.reason);
    } catch (const failure& why) {
      const std::string said = why.what();
      found_.notes.push_back("nothing could be derived: " +
                             (said.starts_with(trace) ? "the recording" + said.substr(trace.size()) : said));
      return false;
    }
    fit_evidence evidence{.does = observe(plan_.fd())};
    evidence.program_seconds = processor_seconds_;
    found_.evidence = std::move(evidence);
    return true;
  }

  void search() {
    tell_stage("replaying the default");
    search_->replay_default(*found_.evidence);
    const std::vector<candidate> singles = candidates_for(*found_.evidence, options_.goal);
    const double until =
        std::max(budget_.spent() + part_of_search * budget_.all(), budget_.all() - seconds_of_all_rounds());
    try_all(singles, until);
    try_all(search_->combinations(options_.goal), until);
    if (const std::size_t left = singles.size() - std::min(singles.size(), search_->tried().size()); left > 0) {
      untried_ =
          fmt::format("{} of {} candidates were not tried: the search had used up its part of the time (--minutes)",
                      left, singles.size());
      return;
    }
    const bool is_for_memory = options_.goal == fit_goal::memory || options_.goal == fit_goal::both;
    for (unsigned step = 1; is_for_memory && budget_.spent() + search_->seconds_of_one() <= until; ++step) {
      tell_stage(fmt::format("trying one field more ({})", step));
      if (!search_->try_step(options_.goal)) break;
    }
  }

  /// What choosing and the proof take at the most.
  [[nodiscard]] double seconds_of_all_rounds() const {
    const std::size_t chosen_from = most_finalists + 2, proven_beside = peers_.size() + 3;
    return seconds_of_run_ * static_cast<double>((most_rounds_of_choice + 1) * chosen_from +
                                                 (most_rounds_of_proof + 1) * proven_beside * inputs_.size());
  }

  void try_all(const std::vector<candidate>& candidates, double until) {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (budget_.spent() + search_->seconds_of_one() > until) return;
      tell_stage(fmt::format("trying {} ({} of {})", candidates[i].name, i + 1, candidates.size()));
      search_->try_out(candidates[i]);
    }
  }

  /// As many rounds as the seconds allow, within what is of use.
  [[nodiscard]] unsigned rounds_in(double seconds, std::size_t contestants, unsigned least, unsigned most) const {
    const double runs = seconds / std::max(seconds_of_run_, 0.001) / static_cast<double>(contestants) - 1;
    return static_cast<unsigned>(std::clamp<double>(runs, least, most));
  }

  /// The recipe that goes to the proof, if one looks better in real runs.
  void choose() {
    std::vector<const tried_recipe*> finalists = search_->choose(options_.goal, most_finalists);
    if (finalists.empty()) return;
    constexpr unsigned least_rounds = 3;
    std::vector<allocator> candidates{the_default()};
    for (const tried_recipe* const one : finalists) candidates.push_back({one->what.name, one->library, "fit"});
    const unsigned rounds =
        rounds_in(part_of_choice * budget_.all(), candidates.size() + 1, least_rounds, most_rounds_of_choice);
    comparison chosen_in = measure(inputs_.front(), candidates, rounds, "choosing");
    if (chosen_in.interrupted_by != 0) throw interrupted{chosen_in.interrupted_by};
    double best = 1;
    for (const tried_recipe* const one : finalists) {
      const auto judged = judge(chosen_in, one->what.name, default_row, options_.goal);
      if (none_chosen_.empty() && !judged.empty())
        none_chosen_ = fmt::format("{}: {}", one->what.name, changes_of(judged));
      const auto its = score(judged);
      if (!its || *its >= best) continue;
      best = *its;
      found_.fitted = one->what;
      chosen_library_ = one->library;
    }
    found_.selection = std::move(chosen_in);
  }

  void prove() {
    constexpr unsigned least_rounds = 5;
    std::vector<allocator> candidates{the_default()};
    if (found_.fitted) candidates.push_back({fitted_row, chosen_library_, "fit"});
    candidates.insert(candidates.end(), peers_.begin(), peers_.end());
    const unsigned rounds = rounds_in(budget_.left() / static_cast<double>(inputs_.size()), candidates.size() + 1,
                                      least_rounds, most_rounds_of_proof);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      const std::string stage = i == 0 ? "proving" : fmt::format("proving on input {}", i);
      try {
        found_.proofs.push_back(measure(inputs_[i], candidates, rounds, stage.c_str()));
      } catch (const failure& why) {
        throw failure(why.code(), name_of_input(i) + why.what());
      }
      if (found_.proofs.back().interrupted_by != 0) throw interrupted{found_.proofs.back().interrupted_by};
    }
  }

  /// Tells what is known by now. Throws `interrupted` where that is nothing.
  void end_early(int signal) {
    if (!found_.evidence && found_.proofs.empty()) {
      show_step("");
      tell("heapwright: interrupted before the program was recorded: nothing is known\n");
      throw interrupted{signal};
    }
    found_.interrupted_by = signal;
    answer();
  }

  [[nodiscard]] std::string none_was_chosen() const {
    return "no recipe that gains in replays did so in runs of the program without harm; " + none_chosen_;
  }

  /// Of a fit whose proof has no recipe.
  [[nodiscard]] std::string why_none_was_proven() const {
    if (!none_chosen_.empty()) return "keep the default: " + none_was_chosen();
    if (search_->tried().empty() && !untried_.empty()) return "keep the default: no recipe was tried";
    return search_->tried().empty()
               ? "keep the default: nothing that was seen of the program leads to another recipe"
               : "keep the default: by what replays say, no recipe that was tried gains in the program";
  }

  void answer() {
    const bool is_complete = found_.proofs.size() == inputs_.size();
    if (is_complete) {
      found_.answer = answer_of(found_.proofs, found_.fitted.has_value(), options_.goal);
    } else {
      found_.answer = {
          fit_verdict::keep_default, "keep the default: the fit was interrupted before anything was proven", "", {}};
    }
    if (is_complete && found_.answer.verdict == fit_verdict::keep_default && !found_.fitted)
      found_.answer.sentence = why_none_was_proven();
    // Otherwise the sentence says it.
    if (found_.answer.verdict == fit_verdict::other_allocator && !found_.fitted && !none_chosen_.empty())
      found_.notes.push_back(none_was_chosen());
    if (!untried_.empty()) found_.notes.push_back(untried_);
    found_.notes.insert(found_.notes.end(), found_.answer.notes.begin(), found_.answer.notes.end());
    for (const comparison& proof : found_.proofs)
      found_.notes.insert(found_.notes.end(), proof.notes.begin(), proof.notes.end());
  }

  const fit_options& options_;
  const scratch_file* standard_input_;
  time_budget budget_;
  fit_report& found_;
  std::vector<measured_input> inputs_;
  std::vector<allocator> peers_;
  scratch_folder traces_;
  scratch_file plan_;
  std::optional<recipe_search> search_;
  std::string chosen_library_;
  std::string none_chosen_;  ///< what runs said of the most promising recipe, if none of them was chosen
  std::string untried_;      ///< a sentence on candidates that there was no time for; empty if none was left
  double seconds_of_run_ = 0, processor_seconds_ = 0;
};

/// The folder of the results, made where it is not there; its parent is. Goes away with this object
/// if it was made here, and nothing is in it.
class results_folder {
 public:
  explicit results_folder(const std::string& path) : path_(path) {
    if (files::absolute(path_).string().find_first_of(" :") != std::string::npos)
      throw failure(exit_code::bad_input,
                    fmt::format("-o {}: LD_PRELOAD cannot express a path with a space or a colon, so no malloc there "
                                "could be preloaded; name another folder",
                                path));
    std::error_code trouble;
    is_new_ = files::create_directory(path_, trouble);
    if (trouble == std::errc::file_exists) trouble = std::make_error_code(std::errc::not_a_directory);
    if (!trouble && access(path_.c_str(), W_OK | X_OK) != 0) trouble.assign(errno, std::generic_category());
    if (trouble)
      throw failure(exit_code::bad_input, fmt::format("cannot write to {}: {}", path, std::strerror(trouble.value())));
  }
  results_folder(const results_folder&) = delete;
  results_folder& operator=(const results_folder&) = delete;
  ~results_folder() {
    std::error_code is_in_use;
    if (is_new_) files::remove(path_, is_in_use);
  }

  [[nodiscard]] const files::path& path() const noexcept { return path_; }

 private:
  files::path path_;
  bool is_new_ = false;
};

void check(const fit_options& options) {
  const auto server = given_server(options.server, 0);
  if (options.goal == fit_goal::latency &&
      (!server || std::ranges::all_of(server->figures, &driver_figure::higher_is_better)))
    throw failure(exit_code::bad_input,
                  "--for latency: say which figure of the driver is the latency, by --driver and --figure; one that is "
                  "better where it is higher is none (--for time asks for it)");
  for (const std::vector<std::string>& words : options.inputs)
    if (words.empty() || words.front().empty()) throw failure(exit_code::bad_input, "--input: is empty");
}

/// Recipe and malloc take their places when the malloc has passed its trials. A recipe whose malloc
/// could not be built or tried is kept without it: what has gained is not lost.
void keep_recipe(fitting& by, const files::path& folder, fit_report& found) {
  if (found.answer.verdict != fit_verdict::fitted) return;
  const files::path recipe = folder / "recipe.hpp", library = folder / "libfitted.so";
  const std::string text = header_of(*found.fitted, header_comment(found));
  const auto give_up = [&](const std::string& why) {
    found.answer = {fit_verdict::keep_default, fmt::format("keep the default: {}", why), "", {}};
  };
  const auto keep = [&] {
    output_file header(recipe);
    header.write(text);
    header.finish();
    found.recipe = recipe;
  };
  const auto keep_untried = [&](const std::string& why) {
    give_up(why);
    try {
      keep();
      found.notes.push_back(
          fmt::format("the recipe that gained is {}; it was not tried by conformance and stress "
                      "tests: heapwright build {} -o LIBRARY --check does it",
                      recipe.string(), recipe.string()));
    } catch (const failure& trouble) {
      found.notes.emplace_back(trouble.what());
    }
  };
  const auto interrupted_by = [&](int signal) {
    found.interrupted_by = signal;
    keep_untried("interrupted while the malloc of the recipe that gained was built and tried");
  };
  bool is_built = false;
  try {
    unfinished_file unfinished(library, 0666);
    const auto cannot_write = [&] {
      return failure(exit_code::bad_input, fmt::format("cannot write {}: {}", library.string(), std::strerror(errno)));
    };
    if (!unfinished.is_open()) throw cannot_write();
    tell_stage("building the malloc, and trying it");
    const recipe_build proven = by.proven();
    proven.make(unfinished.path());
    is_built = true;
    by.check(unfinished.path(), proven);
    if (!unfinished.take_name()) throw cannot_write();
    keep();
    found.library = library;
  } catch (const interrupted& by_signal) {
    interrupted_by(by_signal.signal);
  } catch (const failure& trouble) {
    if (interruptible::is_noted()) {
      interrupted_by(interruptible::noted());
    } else if (is_built) {
      give_up(fmt::format("the recipe that gained is not kept ({})", trouble.what()));
    } else {
      found.notes.emplace_back(trouble.what());
      keep_untried("the malloc of the recipe that gained could not be built (a note says why)");
    }
  }
  show_step("");
}

}  // namespace

int fit(const fit_options& options) {
  check(options);
  fit_report found;
  found.command = options.command;
  found.started = local_time();
  found.machine = machine_description::of_this_one();
  found.goal = options.goal;
  program target = program::resolve(options.command);
  check_replaces_none("--json", options.json, options.command);
  check_writable(options.json);
  const auto input = options.server.driver.empty() ? given_input() : std::nullopt;
  const interruptible guard;  // outlives the folder
  const results_folder folder(options.output);
  const given_allocators given("fit", options.with);
  fitting all(options, std::move(target), input ? &*input : nullptr, given.all(), found);
  all.run();
  keep_recipe(all, folder.path(), found);

  std::vector<std::string> lost;
  const auto is_written = [&](const std::string& path, const std::string& text) {
    try {
      write_outputs({{path, text}}, exit_code::judged_no);
    } catch (const failure& why) {
      lost.emplace_back(why.what());
      return false;
    }
    return true;
  };
  const std::string page = folder.path() / "report.html";
  if (is_written(page, page_view(found))) found.page = page;
  if (!options.json.empty()) is_written(options.json, json_view(found));
  if (options.json != "-") is_written("-", text_view(found, wants_colour(STDOUT_FILENO)));
  if (!lost.empty()) throw failure(exit_code::judged_no, fmt::format("{}", fmt::join(lost, "; ")));
  if (found.interrupted_by != 0) throw interrupted{found.interrupted_by};
  return EXIT_SUCCESS;
}

}  // namespace heapwright::tool
