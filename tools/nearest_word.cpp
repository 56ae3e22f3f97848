// The distance is found row by row of the usual table: row i, column j has that of the first i
// letters to the first j.
#include "nearest_word.hpp"

#include <algorithm>
#include <vector>

namespace heapwright::tool {
namespace {

std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> table(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      std::size_t& least = table[i][j];
      if (i == 0 || j == 0) {
        least = i + j;
        continue;
      }
      const std::size_t replaced = a[i - 1] == b[j - 1] ? 0 : 1;
      least = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + replaced});
      const bool are_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (are_swapped) least = std::min(least, table[i - 2][j - 2] + 1);
    }
  }
  return table[a.size()][b.size()];
}

}  // namespace

std::string_view nearest_word(std::string_view written, std::span<const std::string> words) {
  std::string_view nearest;
  std::size_t least = 0;
  for (const std::string_view word : words) {
    const std::size_t letters = distance(written, word);
    if (3 * letters > word.size() + 2 || (!nearest.empty() && letters >= least)) continue;
    nearest = word;
    least = letters;
  }
  return nearest;
}

}  // namespace heapwright::tool
