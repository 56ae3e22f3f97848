#include "recipe_names.hpp"

#include <cctype>
#include <sstream>
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

  /// Of an `#if 0` all that the compiler does not read, too.
  void skip_directive() {
    const std::string line = directive();
    if (line == "if 0" || line == "if false") skip_excluded();
  }

  /// Up to the #endif, #else or #elif of an #if that is not true.
  void skip_excluded() {
    for (int open = 1; open > 0 && !rest_.empty();) {
      take(length_while([](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }));
      if (!rest_.starts_with('#')) {
        take(rest_.find('\n'));
        continue;
      }
      const std::string line = directive();
      const std::string_view name = std::string_view(line).substr(0, line.find(' '));
      if (name.starts_with("if")) ++open;
      if (name == "endif" || (open == 1 && (name.starts_with("el")))) --open;
    }
  }

  /// Takes a directive, with the lines that a backslash joins to it. Returns its words, with one
  /// space between two: "if 0".
  std::string directive() {
    take(1);
    std::string text;
    bool is_joined = true;
    while (is_joined && !rest_.empty()) {
      std::string_view line = take(rest_.find('\n'));
      is_joined = line.ends_with('\\');
      if (is_joined) line.remove_suffix(1);
      text.append(line).append(" ");
      take(1);
    }
    std::string words;
    for (std::istringstream input(text.substr(0, text.find("//"))); input >> text;)
      words += words.empty() ? text : " " + text;
    return words;
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

enum class scope_kind { of_namespace, of_class, other };

/// A pair of braces or parentheses that is open.
struct scope {
  scope_kind kind;
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

/// Reads the words of a header one by one. The scopes around the word are a stack.
class definition_finder {
 public:
  explicit definition_finder(const std::string& text) : words_(words_of_code(text)) {}

  found_recipes find() {
    while (at_ < words_.size()) {
      if (scope_kind kind = open_.back().kind; kind != scope_kind::other && enter_scope(kind)) continue;
      const std::string_view now = word(0);
      if (open_.back().kind != scope_kind::other) read_declaration(now);
      if (now == "{" || now == "(") open_.push_back({scope_kind::other, ""});
      if ((now == "}" || now == ")") && open_.size() > 1) open_.pop_back();
      if (now == "}" && open_.back().kind != scope_kind::other && !goes_on_behind_brace()) begin_declaration();
      ++at_;
    }
    return std::move(found_);
  }

 private:
  [[nodiscard]] std::string_view word(std::size_t ahead) const {
    return at_ + ahead < words_.size() ? std::string_view(words_[at_ + ahead]) : std::string_view();
  }

  [[nodiscard]] bool is_name(std::size_t ahead) const {
    return !word(ahead).empty() && is_of_name(word(ahead).front()) && !is_digit(word(ahead).front());
  }

  void begin_declaration() { is_of_recipes_ = is_auto_ = is_static_ = is_template_ = false; }

  /// That of an initialiser, not of a function's body.
  [[nodiscard]] bool goes_on_behind_brace() const {
    return word(1) == "," || word(1) == ";" || word(1) == "(" || word(1) == ".";
  }

  /// Goes behind the `{` of a namespace or a class that begins here. Members of a template have no
  /// name by which the malloc could be made of them.
  bool enter_scope(scope_kind around) {
    std::string name;
    std::size_t in = around == scope_kind::of_namespace ? enter_namespace(words_, at_, name) : at_;
    const bool is_namespace = in != at_;
    if (!is_namespace && !is_template_) in = enter_class(name);
    if (in == at_) return false;
    open_.push_back({is_namespace ? scope_kind::of_namespace : scope_kind::of_class, open_.back().prefix + name});
    at_ = in;
    begin_declaration();
    return true;
  }

  std::size_t enter_class(std::string& name) const {
    if ((word(0) != "struct" && word(0) != "class") || !is_name(1)) return at_;
    name = std::string(word(1)) + "::";
    for (std::size_t ahead = 2; !word(ahead).empty(); ++ahead) {
      if (word(ahead) == "{") return at_ + ahead + 1;
      // A declaration, a function or a variable of this class, a specialisation.
      if (word(ahead) == ";" || word(ahead) == "(" || word(ahead) == "=" ||
          (word(ahead) == "<" && word(ahead - 1) == word(1)))
        return at_;
    }
    return at_;
  }

  void read_declaration(std::string_view now) {
    if (now == ";") return begin_declaration();
    if (now == "static") is_static_ = true;
    if (now == "template") is_template_ = true;
    const bool is_assigned = word(2) == "=" && word(3) != "=";
    if (!is_name(1) || is_template_ || !(is_assigned || word(2) == "{")) return;
    if (now == "auto") is_auto_ = true;
    if (now == "recipe") is_of_recipes_ = true;
    const bool begins_name = now == "auto" || now == "recipe" || now == ",";
    if (!begins_name || !(is_of_recipes_ || (is_auto_ && is_assigned && makes_recipe(3)))) return;
    const std::string name = open_.back().prefix + std::string(word(1));
    if (open_.back().kind == scope_kind::of_namespace)
      found_.at_namespace_scope.push_back(name);
    else if (is_static_)
      found_.members.push_back(name);
  }

  /// `heapwright::recipe{...}` or `recipe(...)`, and nothing behind it.
  [[nodiscard]] bool makes_recipe(std::size_t ahead) const {
    while (word(ahead) == "::" || (is_name(ahead) && word(ahead + 1) == "::")) ++ahead;
    if (word(ahead) != "recipe" || (word(ahead + 1) != "{" && word(ahead + 1) != "(")) return false;
    int depth = 0;
    for (++ahead; !word(ahead).empty(); ++ahead) {
      if (word(ahead) == "{" || word(ahead) == "(") ++depth;
      if (word(ahead) == "}" || word(ahead) == ")") --depth;
      if (depth == 0) return word(ahead + 1) == ";" || word(ahead + 1) == ",";
    }
    return false;
  }

  std::vector<std::string> words_;
  std::size_t at_ = 0;
  std::vector<scope> open_{{scope_kind::of_namespace, ""}};
  // What the declaration is, up to its end.
  bool is_of_recipes_ = false;
  bool is_auto_ = false;
  bool is_static_ = false;
  bool is_template_ = false;
  found_recipes found_;
};

}  // namespace

std::vector<std::string> words_of_code(const std::string& text) {
  std::vector<std::string> words;
  word_reader reader(text);
  for (std::string word = reader.next(); !word.empty(); word = reader.next()) words.push_back(std::move(word));
  return words;
}

found_recipes recipes_in(const std::string& text) { return definition_finder(text).find(); }

}  // namespace heapwright::tool
