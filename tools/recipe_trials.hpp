// Trials of a malloc that was made from a recipe: the conformance and stress tests of this
// installation. Where memory is limited, they try one made without the limit, and a test of its own
// tries the limit.
#pragma once

#include <string>

#include "recipe_build.hpp"

namespace heapwright::tool {

/// Whether this installation has them: not if it was built without tests.
[[nodiscard]] bool has_trials();

/// Throws `failure` if it has none.
void must_have_trials();

/// Throws `failure` with the names of the tests that failed. Takes some seconds.
void try_out(const std::string& library, const recipe_build& recipe);

}  // namespace heapwright::tool
