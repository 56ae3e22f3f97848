#include "recipe_names.hpp"

#include <cctype>
#include <string_view>

namespace heapwright::tool {
namespace {

bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

bool is_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }

/// What is left of a text, word by word.
class word_reader {
 public:
  explicit word_reader(std::string_view text) : rest_(text) {}

  /// Empty at the end.
  std::string next() {
    skip_what_is_no_code();
    if (rest_.empty()) return {};
    is_line_start_ = false;
    const char c = rest_.front();
    if (c == '"' || c == '\'') return literal(c);
    if (is_digit(c))
      return std::string(take(length_while([](char d) { return is_of_name(d) || d == '.' || d == '\''; })));
    if (!is_of_name(c)) return std::string(take(rest_.starts_with("::") ? 2 : 1));
    const std::string word(take(length_while(is_of_name)));
    const bool is_prefix = word == "R" || word == "u8R" || word == "uR" || word == "UR" || word == "LR";
    return is_prefix && rest_.starts_with('"') ? raw_literal() : word;
  }

 private:
  std::string_view take(std::size_t length) {
    const std::string_view taken = rest_.substr(0, length);
    rest_.remove_prefix(taken.size());
    return taken;
  }

  template <class Predicate>
  [[nodiscard]] std::size_t length_while(Predicate holds) const {
    std::size_t length = 0;
    while (length < rest_.size() && holds(rest_[length])) ++length;
    return length;
  }

  /// Up to and with this; all, if it does not come.
  void skip_past(std::string_view end) {
    const auto at = rest_.find(end);
    take(at == std::string_view::npos ? rest_.size() : at + end.size());
  }

  void skip_what_is_no_code() {
    for (;;) {
      if (rest_.empty()) return;
      if (rest_.starts_with("//")) {
        take(rest_.find('\n'));
      } else if (rest_.starts_with("/*")) {
        take(2);
        skip_past("*/");
      } else if (rest_.front() == '#' && is_line_start_) {
        skip_directive();
      } else if (std::isspace(static_cast<unsigned char>(rest_.front())) != 0) {
        is_line_start_ |= take(1) == "\n";
      } else {
        return;
      }
    }
  }

  /// With the lines that a backslash joins to it.
  void skip_directive() {
    bool is_joined = true;
    while (is_joined && !rest_.empty()) {
      const std::string_view line = take(rest_.find('\n'));
      is_joined = line.ends_with('\\');
      take(1);
    }
  }

  std::string literal(char quote) {
    take(1);
    while (!rest_.empty() && rest_.front() != quote && rest_.front() != '\n') take(rest_.front() == '\\' ? 2 : 1);
    take(1);
    return "\"";
  }

  std::string raw_literal() {
    take(1);
    const std::string end = ")" + std::string(take(rest_.find('('))) + "\"";
    skip_past(end);
    return "\"";
  }

  std::string_view rest_;
  bool is_line_start_ = true;
};

/// A pair of braces or parentheses that is open.
struct scope {
  bool is_namespace;
  std::string prefix;  ///< of the names in it: "x::"
};

/// The place behind the `{` of a namespace that begins at `at`, with its name before a name in it;
/// the same place if none begins there.
std::size_t enter_namespace(const std::vector<std::string>& words, std::size_t at, std::string& prefix) {
  const auto word = [&](std::size_t i) { return i < words.size() ? std::string_view(words[i]) : std::string_view(); };
  prefix.clear();
  if (word(at) == "extern" && word(at + 1) == "\"" && word(at + 2) == "{") return at + 3;
  if (word(at) != "namespace") return at;
  int brackets = 0;  // of attributes
  for (std::size_t i = at + 1; i < words.size(); ++i) {
    if (word(i) == "{") return i + 1;
    if (word(i) == "[") ++brackets;
    if (word(i) == "]") --brackets;
    if (word(i) == "=" || word(i) == ";") return at;  // another name for a namespace
    if (brackets == 0 && is_of_name(word(i).front()) && word(i) != "inline") prefix += words[i] + "::";
  }
  return at;
}

}  // namespace

std::vector<std::string> words_of_code(const std::string& text) {
  std::vector<std::string> words;
  word_reader reader(text);
  for (std::string word = reader.next(); !word.empty(); word = reader.next()) words.push_back(std::move(word));
  return words;
}

std::vector<std::string> recipes_in(const std::string& text) {
  const std::vector<std::string> words = words_of_code(text);
  std::vector<std::string> found;
  std::vector<scope> open{{true, ""}};
  bool is_in_definition = false;  // of recipes, up to the semicolon
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (open.back().is_namespace) {
      std::string name;
      if (const std::size_t in = enter_namespace(words, i, name); in != i) {
        open.push_back({true, open.back().prefix + name});
        i = in - 1;
        continue;
      }
      const bool is_named =
          i + 2 < words.size() && (is_of_name(words[i + 1].front()) && !is_digit(words[i + 1].front()));
      const bool is_defined =
          is_named && ((words[i + 2] == "=" && (i + 3 >= words.size() || words[i + 3] != "=")) || words[i + 2] == "{");
      if (is_defined && (word == "recipe" || (word == "," && is_in_definition))) {
        found.push_back(open.back().prefix + words[i + 1]);
        is_in_definition = true;
      }
      if (word == ";") is_in_definition = false;
    }
    if (word == "{" || word == "(") open.push_back({false, ""});
    if ((word == "}" || word == ")") && open.size() > 1) open.pop_back();
  }
  return found;
}

}  // namespace heapwright::tool
