// Which definitions in a header are recipes, and which are not.
#include "recipe_names.hpp"

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

using names = std::vector<std::string>;

names at_namespace_scope(const char* text) { return recipes_in(text).at_namespace_scope; }
names members(const char* text) { return recipes_in(text).members; }

TEST(recipe_names, definitions_at_namespace_scope) {
  EXPECT_EQ(
      at_namespace_scope("inline constexpr heapwright::recipe a = {};\nconstexpr recipe b{.pages = {.limit = 1'000}};"),
      (names{"a", "b"}));
  EXPECT_EQ(at_namespace_scope("constexpr heapwright::recipe a{}, b{.spans = {1, 2}}, c = a;"), (names{"a", "b", "c"}));
  EXPECT_EQ(at_namespace_scope("constexpr heapwright::recipe a /* { */ = {}; // recipe b = {};\n"), names{"a"});
  EXPECT_EQ(at_namespace_scope(""), names{});
}

TEST(recipe_names, locals_members_and_parameters_are_none) {
  EXPECT_EQ(at_namespace_scope("inline constexpr heapwright::recipe base{};\n"
                               "inline constexpr heapwright::recipe derived = [] { heapwright::recipe r = base; "
                               "if (true) { heapwright::recipe s{}; } return r; }();"),
            (names{"base", "derived"}));
  EXPECT_EQ(at_namespace_scope("struct s { static constexpr recipe m = {}; };\nvoid f(recipe p = {}, int i = 0);\n"
                               "constexpr recipe made() { recipe l = {}; return l; }\nextern const recipe elsewhere;\n"
                               "constexpr const recipe& other = s::m; constexpr bool b = recipe_of == s;"),
            names{});
}

TEST(recipe_names, auto_that_is_a_recipe) {
  EXPECT_EQ(at_namespace_scope("inline constexpr auto a = heapwright::recipe{.pages = {}};\n"
                               "constexpr auto b = ::heapwright::recipe(), c = recipe{};\n"
                               "namespace x { const auto d = recipe{}; }\n"
                               "auto e = recipe_of{}; auto f = a; auto g = recipe::h{}; auto i = recipe{}.pages;"),
            (names{"a", "b", "c", "x::d"}));
}

TEST(recipe_names, static_members_are_told_apart) {
  const char* const text =
      "template <class T> void f() { }\nstruct config { static void f() { } recipe no{}; static constexpr "
      "heapwright::recipe mine = {}; recipe r = {}; int i = 0; };\n"
      "namespace x { class y final : public config { public: void f() { static recipe no{}; } class z;\n"
      "  struct z { static constexpr auto n = recipe{}; }; static constexpr recipe m{}; }; }\n"
      "template <class T> struct t { static constexpr recipe no = {}; };\n"
      "struct config g = {}; struct config h(struct config c); constexpr recipe a = {};\n"
      "template <class T> constexpr recipe v = {};\nconstexpr recipe b = {};";
  EXPECT_EQ(members(text), (names{"config::mine", "x::y::z::n", "x::y::m"}));
  EXPECT_EQ(at_namespace_scope(text), (names{"a", "b"}));
}

TEST(recipe_names, what_the_preprocessor_leaves_out_is_not_read) {
  EXPECT_EQ(at_namespace_scope(
                "#if 0\nconstexpr recipe no = {};\n#if 1\n#else\nrecipe no{};\n#endif\nit's {\n#endif\n"
                "constexpr recipe a = {};\n # if  0 // off\nrecipe no{};\n #  else\nconstexpr recipe b = {};\n#endif\n"
                "#if 0\n#elif 1\nconstexpr recipe c = {};\n#endif\n#ifdef X\nconstexpr recipe d = {};\n#endif\n"
                "#if 0 || X\nconstexpr recipe e = {};\n#endif\n#if 0\nrecipe no{};"),
            (names{"a", "b", "c", "d", "e"}));
}

TEST(recipe_names, in_a_namespace_the_name_is_qualified) {
  EXPECT_EQ(
      at_namespace_scope("namespace x { constexpr recipe a = {}; namespace y::inline z { constexpr recipe b = {}; } }\n"
                         "namespace hw = heapwright;\nconstexpr hw::recipe c = {};\n"
                         "namespace [[deprecated]] d { constexpr recipe e = {}; }\n"
                         "namespace { constexpr recipe f = {}; }\nextern \"C\" { constexpr recipe g = {}; }"),
      (names{"x::a", "x::y::z::b", "c", "d::e", "f", "g"}));
}

TEST(recipe_names, what_is_no_code_is_not_read) {
  EXPECT_EQ(
      at_namespace_scope("#define OPEN { \\\n recipe no = {};\n#if 1\nconstexpr recipe a = {};\n#endif\n"
                         "constexpr const char* t = \"{ recipe b = {}; \\\" {\";\nconstexpr char q = '{', p = '\\'';\n"
                         "constexpr const char* r = R\"x({ \" )\" recipe c = {}; )x\";\nconstexpr recipe d = {};"),
      (names{"a", "d"}));
  for (const char* const unended : {"/*", "\"", "R\"x(", "#define A \\", "namespace", "namespace x", "recipe",
                                    "recipe a", "extern \"C\"", "}", "})", "'", "//"})
    EXPECT_EQ(at_namespace_scope(unended), names{}) << unended;
}

}  // namespace
}  // namespace heapwright::tool
