// Which definitions in a header are recipes, and which are not.
#include "recipe_names.hpp"

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

using names = std::vector<std::string>;

TEST(recipe_names, definitions_at_namespace_scope) {
  EXPECT_EQ(recipes_in("inline constexpr heapwright::recipe a = {};\nconstexpr recipe b{.pages = {.limit = 1'000}};"),
            (names{"a", "b"}));
  EXPECT_EQ(recipes_in("constexpr heapwright::recipe a{}, b{.spans = {1, 2}}, c = a;"), (names{"a", "b", "c"}));
  EXPECT_EQ(recipes_in("constexpr heapwright::recipe a /* { */ = {}; // recipe b = {};\n"), names{"a"});
  EXPECT_EQ(recipes_in(""), names{});
}

TEST(recipe_names, locals_members_and_parameters_are_none) {
  EXPECT_EQ(recipes_in("inline constexpr heapwright::recipe base{};\n"
                       "inline constexpr heapwright::recipe derived = [] { heapwright::recipe r = base; "
                       "if (true) { heapwright::recipe s{}; } return r; }();"),
            (names{"base", "derived"}));
  EXPECT_EQ(recipes_in("struct s { static constexpr recipe m = {}; };\nvoid f(recipe p = {}, int i = 0);\n"
                       "constexpr recipe made() { recipe l = {}; return l; }\nextern const recipe elsewhere;\n"
                       "constexpr const recipe& other = s::m; constexpr bool b = recipe_of == s;"),
            names{});
}

TEST(recipe_names, in_a_namespace_the_name_is_qualified) {
  EXPECT_EQ(recipes_in("namespace x { constexpr recipe a = {}; namespace y::inline z { constexpr recipe b = {}; } }\n"
                       "namespace hw = heapwright;\nconstexpr hw::recipe c = {};\n"
                       "namespace [[deprecated]] d { constexpr recipe e = {}; }\n"
                       "namespace { constexpr recipe f = {}; }\nextern \"C\" { constexpr recipe g = {}; }"),
            (names{"x::a", "x::y::z::b", "c", "d::e", "f", "g"}));
}

TEST(recipe_names, what_is_no_code_is_not_read) {
  EXPECT_EQ(recipes_in("#define OPEN { \\\n recipe no = {};\n#if 1\nconstexpr recipe a = {};\n#endif\n"
                       "constexpr const char* t = \"{ recipe b = {}; \\\" {\";\nconstexpr char q = '{', p = '\\'';\n"
                       "constexpr const char* r = R\"x({ \" )\" recipe c = {}; )x\";\nconstexpr recipe d = {};"),
            (names{"a", "d"}));
  for (const char* const unended : {"/*", "\"", "R\"x(", "#define A \\", "namespace", "namespace x", "recipe",
                                    "recipe a", "extern \"C\"", "}", "})", "'", "//"})
    EXPECT_EQ(recipes_in(unended), names{}) << unended;
}

}  // namespace
}  // namespace heapwright::tool
