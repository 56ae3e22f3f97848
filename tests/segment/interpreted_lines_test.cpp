// Tables of lines that CPython has made of one function, and the lines that it says itself.
#include "interpreted_lines.hpp"

#include <gtest/gtest.h>

namespace heapwright::tool {
namespace {

using segment::line_table;

/// So many instructions of a line; 0: of none, for which the function's first one stands.
struct run_of_line {
  unsigned instructions, line;
};

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes.push_back(static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16)));
  return bytes;
}

void expect_lines(line_table lines, const std::string& table, const std::vector<run_of_line>& runs) {
  const segment::interpreted_code_figures code{"work", "a.py", 2, lines, bytes_of(table)};
  std::uint32_t instruction = 0;
  for (const run_of_line& run : runs)
    for (unsigned i = 0; i < run.instructions; ++i, instruction += 2)
      ASSERT_EQ(line_at(code, instruction), run.line == 0 ? 2 : run.line) << instruction;
}

TEST(interpreted_lines, of_cpython_3_9) {
  expect_lines(line_table::python_3_9, "00020401080102010401020102fe0a040c01060202fe127f004d0a01",
               {{2, 4},
                {4, 5},
                {1, 6},
                {2, 7},
                {1, 8},
                {1, 9},
                {5, 7},
                {6, 11},
                {3, 12},
                {1, 14},
                {9, 12},
                {5, 216},
                {21, 217}});
}

TEST(interpreted_lines, of_cpython_3_10) {
  expect_lines(line_table::python_3_10, "0402080102010401020102010afe0c04060102020efe02ff007f0a4e060124ff",
               {{2, 4},
                {4, 5},
                {1, 6},
                {2, 7},
                {1, 8},
                {1, 9},
                {5, 7},
                {6, 11},
                {3, 12},
                {1, 14},
                {7, 12},
                {1, 11},
                {5, 216},
                {3, 217},
                {18, 216}});
}

TEST(interpreted_lines, of_cpython_3_11) {
  expect_lines(line_table::python_3_11,
               "8000e00c0d8045d81015f0000a050ef0000a050e8804f00209090ed80c119553d81014d81015f10503160ef40003160ef100"
               "030d0e88458845f8f50800101af00004090ef00004090ef00004090ef00203140ef00003140ee0191ef00503140ef1000314"
               "0ef40003140ef000030d0ef000030d0ef000030d0ef000030d0ef000030d0ef00304090ef8f8f8f55a06000a0e8865891b8c"
               "1bf00001051b9804d80f138f798a79897b8c7bf00301051bf00001051bf00001051bf00001051bf10001051bf40001051bf0"
               "0001051bf00001051bf00001051bf00001051bf00001051bf00001051bf8f8f8f00001051bf00001051bf00001051bf00001"
               "051bf00001051bf00001051b",
               {{1, 2},  {2, 4},  {4, 5},   {1, 6},  {7, 7}, {1, 8},    {1, 9},    {11, 7},   {1, 0}, {9, 11},
                {2, 12}, {1, 14}, {13, 12}, {1, 11}, {3, 0}, {16, 216}, {19, 217}, {17, 216}, {3, 0}, {6, 216}});
}

TEST(interpreted_lines, of_cpython_3_13) {
  expect_lines(line_table::python_3_11,
               "8000e00c0d8045db10158804f00209090ed80c119453d81014d81015f30503160ef100030d0e8a45f105001116f46606000a"
               "0e88658c1b9804d80f138f7989798b7bf703000a15891bf8f45b0600101af30004090ef106001a1ff30503140ee1191e9041"
               "f303001112da191ef9f40503140ef400030d0ef00304090efaf75a06000a158d1bfa",
               {{1, 2},    {2, 4},    {5, 5},    {1, 6},  {6, 7},  {1, 8},    {1, 9},  {9, 7},  {2, 5},
                {12, 216}, {15, 217}, {10, 216}, {1, 0},  {9, 11}, {2, 14},   {4, 12}, {3, 14}, {4, 13},
                {3, 14},   {2, 0},    {10, 12},  {1, 11}, {3, 0},  {14, 216}, {3, 0}});
}

TEST(interpreted_lines, of_a_table_that_ends_too_early_or_is_none) {
  const std::string whole = bytes_of("8000e00c0d8045d81015f0000a050e");
  for (std::size_t length = 0; length <= whole.size(); ++length) {
    const segment::interpreted_code_figures code{"work", "a.py", 2, line_table::python_3_11, whole.substr(0, length)};
    EXPECT_EQ(line_at(code, 1000), 2U) << length;
  }
  EXPECT_EQ(line_at({"work", "a.py", 7, line_table::none, ""}, 0), 7U);
  EXPECT_EQ(line_at({"work", "a.py", -1, line_table::none, ""}, 0), 0U);
}

TEST(interpreted_lines, of_a_call_that_has_its_line) {
  const segment::interpreted_code_figures code{"work", "a.php", 7, line_table::line_of_call, ""};
  EXPECT_EQ(line_at(code, 12), 12U);
  EXPECT_EQ(line_at(code, 0), 7U) << "not known";
}

TEST(interpreted_lines, of_any_bytes_at_all) {
  std::uint32_t random = 1;
  for (int i = 0; i < 20'000; ++i) {
    std::string table;
    for (int k = 0; k < 40; ++k) table.push_back(static_cast<char>((random = random * 1664525 + 1013904223) >> 24));
    for (const line_table lines : {line_table::python_3_9, line_table::python_3_10, line_table::python_3_11})
      (void)line_at({"work", "a.py", 2, lines, table}, random % 400);
  }
}

}  // namespace
}  // namespace heapwright::tool
