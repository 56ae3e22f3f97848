// A malloc made from a recipe: all that `heapwright build` and `compare --with RECIPE.hpp` share.
//
// What is compiled is the source of libheapwright, with the user's header read first
// (malloc/chosen_recipe.hpp says how):
//   look     which recipe the header defines
//   check    the header and the recipe's static_asserts alone, so that what is wrong with it is
//            said in their sentences; if something is, each step for itself, for the first that
//            fails
//   make     each source, several at once, and the link
// What is made on the way lies in a scratch folder that goes away with the object.
#pragma once

#include <string>
#include <vector>

#include "build_surroundings.hpp"
#include "compiler.hpp"
#include "failure.hpp"

namespace heapwright::tool {

class recipe_build {
 public:
  /// `recipe`: the name of one in the header, qualified; empty for the one that there is.
  /// `compiler`: empty for $CXX, or else c++. `choose`: what the user should do where there are
  /// several. Throws `failure` if there is no such recipe. To be made while an `interruptible`
  /// lives.
  recipe_build(const std::string& header, const std::string& recipe, const std::string& compiler,
               const std::string& choose);

  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const std::string& header() const noexcept { return header_; }
  [[nodiscard]] const scratch_folder& scratch() const noexcept { return scratch_; }

  /// Throws `failure` with the sentences of the static_asserts that the recipe violates.
  void check() const;

  /// Throws `failure` where a library cannot be put at this path, which the user has given as
  /// `output`, or would replace the recipe.
  void check_place(const std::string& output, const std::string& library) const;

  /// Compiles and links all of the malloc to this file. Throws `failure`.
  void make(const std::string& library) const { make(library, header_, name_); }
  /// Of a recipe that another header makes of this one.
  void make(const std::string& library, const std::string& header, const std::string& recipe) const;

  /// What the compiler says of some code after the header.
  [[nodiscard]] compiler_result probe(const std::string& code) const;

  /// Makes a shared object of some code after the header, and says where it is.
  [[nodiscard]] std::string object_of(const std::string& name, const std::string& code) const;

 private:
  struct sources {
    std::string headers;
    std::string malloc;
  };

  static sources find_sources();
  [[nodiscard]] failure not_built(const std::string& why) const;
  void must_be_good(const std::vector<compiler_result>& results) const;
  [[nodiscard]] std::vector<std::string> arguments(const std::string& header, const std::string& recipe) const;

  std::string given_;   ///< the header, as the user named it
  std::string header_;  ///< its absolute path
  std::string name_;
  sources from_;
  compiler with_;
  scratch_folder scratch_;
};

void write_source(const std::string& path, const std::string& text);

}  // namespace heapwright::tool
