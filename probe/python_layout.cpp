#include "python_layout.hpp"

#include <cstring>

#include "exported_symbols.hpp"

namespace heapwright::probe {
namespace {

using segment::line_table;

constexpr python_layout of_3_9{.lines = line_table::python_3_9,
                               .frame = 24,
                               .code = 32,
                               .outer_frame = 24,
                               .instruction = 104,
                               .index_unit = 1,
                               .file_name = 104,
                               .name = 112,
                               .first_line = 40,
                               .line_table = 120,
                               .ascii_text = 48,
                               .other_text = 72};

constexpr python_layout of_3_10{.lines = line_table::python_3_10,
                                .frame = 24,
                                .c_frame = 48,
                                .outer_c_frame = 8,
                                .code = 32,
                                .outer_frame = 24,
                                .instruction = 96,
                                .index_unit = 2,
                                .file_name = 104,
                                .name = 112,
                                .first_line = 40,
                                .line_table = 120,
                                .ascii_text = 48,
                                .other_text = 72};

constexpr python_layout of_3_11{.lines = line_table::python_3_11,
                                .c_frame = 56,
                                .innermost_frame = 8,
                                .outer_c_frame = 16,
                                .code = 32,
                                .outer_frame = 48,
                                .instruction = 56,
                                .is_outermost = 68,
                                .file_name = 112,
                                .name = 128,
                                .first_line = 72,
                                .line_table = 136,
                                .instructions = 184,
                                .ascii_text = 48,
                                .other_text = 72};

constexpr python_layout of_3_12{.lines = line_table::python_3_11,
                                .c_frame = 56,
                                .innermost_frame = 0,
                                .outer_c_frame = 8,
                                .code = 0,
                                .outer_frame = 8,
                                .instruction = 56,
                                .owner = 70,
                                .file_name = 112,
                                .name = 128,
                                .first_line = 68,
                                .line_table = 136,
                                .instructions = 192,
                                .ascii_text = 40,
                                .other_text = 56};

/// What an interpreter tells of itself from 3.13 on is a list of words. This says which word is
/// which.
struct told_words {
  unsigned current_frame, outer_frame, code, instruction, owner;
  unsigned file_name, qualified_name, line_table, first_line, instructions;
  unsigned type, byte_count, bytes, text_state, text_length, ascii_text;
};

constexpr told_words words_of_3_13{23, 29, 30, 31, 33, 35, 37, 38, 39, 43, 45, 65, 66, 68, 69, 70};
constexpr told_words words_of_3_14{26, 32, 33, 34, 36, 40, 42, 43, 44, 48, 51, 75, 76, 78, 79, 80};

python_layout layout_told(const std::uint64_t* words, const told_words& at) noexcept {
  const auto distance = [words](unsigned i) { return static_cast<python_layout::distance>(words[i]); };
  constexpr unsigned between_texts = 2 * sizeof(void*);
  return {.lines = line_table::python_3_11,
          .frame = distance(at.current_frame),
          .code = distance(at.code),
          .outer_frame = distance(at.outer_frame),
          .instruction = distance(at.instruction),
          .owner = distance(at.owner),
          .file_name = distance(at.file_name),
          .name = distance(at.qualified_name),
          .first_line = distance(at.first_line),
          .line_table = distance(at.line_table),
          .instructions = distance(at.instructions),
          .type = distance(at.type),
          .text_length = distance(at.text_length),
          .text_state = distance(at.text_state),
          .ascii_text = distance(at.ascii_text),
          .other_text = static_cast<python_layout::distance>(words[at.ascii_text] + between_texts),
          .byte_count = distance(at.byte_count),
          .bytes = distance(at.bytes)};
}

}  // namespace

std::optional<python_layout> python_layout_in(const exported_symbols& file) noexcept {
  const void* const runtime = file.find("_PyRuntime");
  if (runtime == nullptr) return std::nullopt;
  const auto* const version = static_cast<const unsigned long*>(file.find("Py_Version"));
  if (version == nullptr) {
    if (file.find("Py_Is") != nullptr) return of_3_10;
    if (file.find("Py_GenericAlias") != nullptr) return of_3_9;
    return std::nullopt;
  }
  const auto* const told = static_cast<const std::uint64_t*>(runtime);
  const auto tells = [&] { return std::memcmp(told, "xdebugpy", sizeof *told) == 0 && told[1] == *version; };
  switch (*version >> 16) {
    case 0x030b: return of_3_11;
    case 0x030c: return of_3_12;
    case 0x030d: return tells() ? std::optional(layout_told(told, words_of_3_13)) : std::nullopt;
    case 0x030e: return tells() ? std::optional(layout_told(told, words_of_3_14)) : std::nullopt;
    default: return std::nullopt;
  }
}

}  // namespace heapwright::probe
