// The user's C++ compiler, run several times at once, and what it had to say.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace heapwright::tool {

struct compiler_run {
  std::vector<std::string> arguments;  ///< without the compiler itself
};

struct compiler_result {
  bool good;
  std::string complaints;  ///< all that it wrote to stderr
};

class compiler {
 public:
  /// `command`: as the user gave it, or empty for $CXX, or else c++. May have options of its own:
  /// "ccache g++ -m64". What runs is ended as soon as a signal has come and `is_interrupted` says
  /// so.
  compiler(const std::string& command, bool (*is_interrupted)());

  /// Runs until one fails or all are done, as many at once as there are processors; `done` hears
  /// how many are. The results are in order, of those that were begun. Throws `failure` if there is
  /// no such compiler.
  std::vector<compiler_result> run(const std::vector<compiler_run>& runs,
                                   const std::function<void(std::size_t)>& done = {}) const;

  [[nodiscard]] const std::string& name() const noexcept { return words_.front(); }

 private:
  std::vector<std::string> words_;
  bool (*is_interrupted_)();
};

/// The error lines of a compiler's complaints about a recipe: the sentences of its static_asserts
/// alone, if there are any; otherwise every line that says "error:", shortened to what one can
/// read. Each on a line of its own, after a line break.
std::string recipe_errors(const std::string& complaints);

}  // namespace heapwright::tool
