// heapwright-recipe(5): the fields of a recipe, from the reference.
#pragma once

#include <string>

namespace heapwright::tool {

/// `recipe` and `size_classes`: docs/reference/recipe.md and size_classes.md. Throws
/// std::runtime_error where one has not what a recipe has.
std::string recipe_page(const std::string& recipe, const std::string& size_classes);

}  // namespace heapwright::tool
