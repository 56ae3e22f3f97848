// What the caller of a free says of the block, and what it says wrongly.
#pragma once

#include <cstddef>
#include <cstdint>

#include <heapwright/core/language.hpp>
#include <heapwright/core/text.hpp>

namespace heapwright {

/// Which entries give a block out and take it back: malloc and its kin, new, new[].
enum class block_origin : std::uint8_t { malloc, new_object, new_array };

struct block_claim {
  static constexpr std::size_t not_said = SIZE_MAX;

  block_origin origin = block_origin::malloc;
  std::size_t size = not_said;
  std::size_t alignment = not_said;  ///< 0: none was asked for
};

/// What is known of a live block.
struct known_block {
  block_origin origin;
  std::size_t size;       ///< as asked for
  std::size_t alignment;  ///< 0: none was asked for

  [[nodiscard]] bool has_size(const block_claim& said) const noexcept {
    return said.size == block_claim::not_said || said.size == size;
  }
  [[nodiscard]] bool has_alignment(const block_claim& said) const noexcept {
    return said.alignment == block_claim::not_said || said.alignment == alignment;
  }
  [[nodiscard]] bool is(const block_claim& said) const noexcept {
    return said.origin == origin && has_size(said) && has_alignment(said);
  }

  /// The name of the mistake, if `said` is one.
  [[nodiscard, gnu::cold]] const char* mistake_in(const block_claim& said) const noexcept {
    if (said.origin != origin) return "free with the wrong function";
    return has_size(said) ? "free with a wrong alignment" : "free with a wrong size";
  }

  /// What the block is, and what `said`, a mistake, says that it is.
  [[nodiscard, gnu::cold, gnu::noinline]] text<200> beside(const block_claim& said) const noexcept {
    constexpr const char* entries[] = {"malloc", "new", "new[]"};
    constexpr const char* to_free[] = {"free or realloc", "delete", "delete[]"};
    text<200> line;
    line.add(std::uint64_t{size}).add(" bytes");
    if (said.origin != origin) {
      line.add(", allocated by ").add(entries[static_cast<unsigned>(origin)]);
      return line.add(", freed by ").add(to_free[static_cast<unsigned>(said.origin)]);
    }
    if (!has_size(said)) return line.add(", freed with a size of ").add(std::uint64_t{said.size});
    line.add(alignment == 0 ? ", allocated without an alignment, freed with one of "
                            : ", allocated with an alignment of ");
    if (alignment == 0) return line.add(std::uint64_t{said.alignment});
    line.add(std::uint64_t{alignment}).add(", freed ");
    return said.alignment == 0 ? line.add("without one") : line.add("with one of ").add(std::uint64_t{said.alignment});
  }
};

}  // namespace heapwright
