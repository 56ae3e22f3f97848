// The user's C++ compiler, run several times at once, and what it had to say. How it is run is the
// system's: compiler.cpp here, and the one in windows/.
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
  /// "ccache g++ -m64".
  explicit compiler(const std::string& command);

  /// Runs until one fails or all are done, as many at once as there are processors; `done` hears
  /// how many are. The results are in order, of those that were begun. Throws `failure` if there is
  /// no such compiler, or what runs was interrupted, as the user asked for the end.
  std::vector<compiler_result> run(const std::vector<compiler_run>& runs,
                                   const std::function<void(std::size_t)>& done = {}) const;

  [[nodiscard]] const std::string& name() const noexcept { return words_.front(); }

 private:
  std::vector<std::string> words_;
};

}  // namespace heapwright::tool
