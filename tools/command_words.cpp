#include "command_words.hpp"

#include <algorithm>
#include <cctype>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "failure.hpp"
#include "help_text.hpp"
#include "nearest_word.hpp"

namespace heapwright::tool {
namespace {

std::string unknown(const std::string& what, const std::string& word, const std::vector<std::string>& known,
                    const std::string& list) {
  if (word.empty()) return fmt::format("the {} is empty; {} lists all", what, list);
  const std::string_view meant = nearest_word(word, known);
  return fmt::format("no {} {}; {}{} lists all", what, word,
                     meant.empty() ? "" : fmt::format("did you mean {}? ", meant), list);
}

const CLI::App* subcommand_named(const CLI::App& app, const std::string& name) {
  const auto all = app.get_subcommands(nullptr);
  const auto found = std::ranges::find(all, name, [](const CLI::App* one) { return one->get_name(); });
  return found == all.end() ? nullptr : *found;
}

failure no_such_subcommand(const CLI::App& app, const std::string& word) {
  std::vector<std::string> names{"help", "--help", "--version"};
  for (const CLI::App* const one : app.get_subcommands(nullptr)) names.push_back(one->get_name());
  return {exit_code::bad_input, unknown("subcommand", word, names, "heapwright --help")};
}

/// `command`: "heapwright compare".
std::string no_such_option(const CLI::App& app, const std::string& word, const std::string& command) {
  std::vector<std::string> names;
  for (const CLI::Option* const one : app.get_options())
    for (const std::string& name : one->get_lnames()) names.push_back("--" + name);
  return unknown("option", word, names, command + " --help");
}

/// -1 is a number.
bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' && std::isdigit(static_cast<unsigned char>(word[1])) == 0;
}

bool is_help_option(const std::string& word) { return word == "--help" || word == "-h"; }

/// A word that begins with a dash, taken apart.
struct option_word {
  std::string name;  ///< with its dashes
  bool has_value = false;
  std::string value;

  explicit option_word(const std::string& word) : name(word) {
    const bool is_short = !word.starts_with("--");
    const std::size_t equals = word.find('=');
    const std::size_t end = is_short ? 2 : equals;
    if (end >= word.size()) return;
    has_value = true;
    name = word.substr(0, end);
    value = word.substr(equals == end ? end + 1 : end);
  }
};

/// The words of one subcommand.
class words_of {
 public:
  explicit words_of(const CLI::App& app) : app_(app), result_{app.get_name()} {
    for (const CLI::Option* const one : app.get_options())
      if (one->get_positional() && one->get_name() != command_name) positionals_.push_back(one);
  }

  /// `words[0]` is the subcommand.
  std::vector<std::string> read(const std::vector<std::string>& words) {
    const bool takes_command = app_.get_option_no_throw(command_name) != nullptr;
    bool may_be_option = true;
    for (std::size_t i = 1; i < words.size(); ++i) {
      const std::string& word = words[i];
      const bool has_dash = word.size() > 1 && word[0] == '-';  // no command is called so
      if (may_be_option && (is_option(word) || (takes_command && has_dash)) && word != "--") {
        if (is_help_option(word)) return {app_.get_name(), "--help"};
        take_option(word, i + 1 < words.size() ? &words[i + 1] : nullptr);
        if (has_taken_next_) ++i;
      } else if (takes_command) {
        result_.insert(result_.end(), words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
        has_command_ = words.back() != "--" || i + 1 < words.size();
        break;
      } else if (may_be_option && word == "--") {
        may_be_option = false;
        result_.push_back(word);
      } else {
        take_positional(word);
      }
    }
    check_what_is_missing();
    return std::move(result_);
  }

 private:
  static constexpr const char* command_name = "COMMAND";

  [[nodiscard]] failure wrong(const std::string& what) const {
    return {app_.get_name() == "info" ? exit_code::unreadable : exit_code::bad_input,
            fmt::format("{}: {}", app_.get_name(), what)};
  }

  /// `next`: the word behind it; null if there is none.
  void take_option(const std::string& word, const std::string* next) {
    has_taken_next_ = false;
    option_word read(word);
    const CLI::Option* const option = app_.get_option_no_throw(read.name);
    const bool is_flag = option != nullptr && option->get_expected_min() == 0;
    const bool is_long_with_one_dash = is_flag && read.has_value && !word.starts_with("--");
    if (option == nullptr || option->get_positional() || is_long_with_one_dash)
      throw wrong(no_such_option(app_, word.substr(0, word.find('=')), "heapwright " + app_.get_name()));
    const std::string name = option->get_name();
    if (is_flag && read.has_value && option->get_disable_flag_override())
      throw wrong(fmt::format("{}: it takes no value", name));
    const bool is_repeatable = option->get_items_expected_max() > 1 || option->get_trigger_on_parse();
    if (!seen_.insert(option).second && !is_repeatable) throw wrong(fmt::format("{}: it is given twice", name));
    if (!is_flag && !read.has_value) {
      if (next == nullptr || *next == "--" || is_one_of_ours(*next))
        throw wrong(fmt::format("{}: its value is missing", name));
      read.value = *next;
      has_taken_next_ = true;
    }
    const bool has_value = read.has_value || has_taken_next_;
    if (has_value && read.value.find_first_not_of(' ') == std::string::npos)
      throw wrong(fmt::format("{}: it is empty", name));
    if (is_flag) {
      result_.push_back(word);
    } else {
      result_.push_back(name);
      result_.push_back(read.value);
    }
  }

  /// A value that is called as an option can be written behind a `=`.
  [[nodiscard]] bool is_one_of_ours(const std::string& word) const {
    return is_option(word) && app_.get_option_no_throw(option_word(word).name) != nullptr;
  }

  void take_positional(const std::string& word) {
    if (taken_ == positionals_.size())
      throw wrong(fmt::format("'{}' is one word too many; what it takes is: {}", word, usage_of(app_)));
    if (word.empty()) throw wrong(fmt::format("{}: it is empty", positionals_[taken_]->get_name()));
    ++taken_;
    result_.push_back(word);
  }

  void check_what_is_missing() const {
    for (const CLI::Option* const option : app_.get_options()) {
      if (!option->get_required()) continue;
      const auto place = std::ranges::find(positionals_, option);
      const bool is_there = option->get_name() == command_name ? has_command_
                            : option->get_positional()         ? place - positionals_.begin() < std::ptrdiff_t(taken_)
                                                               : seen_.contains(option);
      if (!is_there)
        throw wrong(fmt::format("{} is missing; what it takes is: {}", option->get_name(), usage_of(app_)));
    }
    for (const CLI::Option* const option : seen_) {
      for (const CLI::Option* const other : option->get_needs())
        if (!seen_.contains(other)) throw wrong(fmt::format("{} requires {}", option->get_name(), other->get_name()));
      for (const CLI::Option* const other : option->get_excludes())
        if (seen_.contains(other))
          throw wrong(fmt::format("{} and {}: say one of them", option->get_name(), other->get_name()));
    }
  }

  const CLI::App& app_;
  std::vector<std::string> result_;
  std::vector<const CLI::Option*> positionals_;  ///< without COMMAND
  std::size_t taken_ = 0;                        ///< of them
  std::set<const CLI::Option*> seen_;
  bool has_taken_next_ = false;
  bool has_command_ = false;
};

}  // namespace

std::vector<std::string> words_for_the_parser(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty()) return {"--help"};
  if (words[0] == "help" || (words.size() > 1 && is_help_option(words[0]))) {
    if (words.size() > 2)
      throw failure(
          exit_code::bad_input,
          fmt::format("help: '{}' is one word too many; say one subcommand: heapwright help {}", words[2], words[1]));
    if (words.size() == 1 || words[1] == "help" || is_help_option(words[1])) return {"--help"};
    if (subcommand_named(app, words[1]) == nullptr) throw no_such_subcommand(app, words[1]);
    return {words[1], "--help"};
  }
  if (is_option(words[0])) {
    if (app.get_option_no_throw(words[0]) == nullptr)
      throw failure(exit_code::bad_input, no_such_option(app, words[0], "heapwright"));
    if (words.size() > 1)
      throw failure(exit_code::bad_input, fmt::format("{}: '{}' is one word too many", words[0], words[1]));
    return {words[0]};
  }
  const CLI::App* const subcommand = subcommand_named(app, words[0]);
  if (subcommand == nullptr) throw no_such_subcommand(app, words[0]);
  return words_of(*subcommand).read(words);
}

}  // namespace heapwright::tool
