#include "ruby_interpreter.hpp"

#include <cstring>

#include "../unwind/frame.hpp"

namespace heapwright::probe {

using unwind::word_at;

namespace {

// Of objects: the first word has flags, the lowest five say what it is.
constexpr std::uintptr_t object_kinds = 0x1f, class_kind = 2, module_kind = 3, text_kind = 5, internal_kind = 0x1a;
constexpr unsigned internal_shift = 12;
constexpr std::uintptr_t internal_kinds = 15, method_entry = 6, instruction_sequence = 7;
constexpr unsigned owner_of_method = 32;
constexpr std::uintptr_t text_is_elsewhere = 1 << 13;

/// Whether a value is an object, and not a number or nil; asks whether it is there.
bool is_object(std::uintptr_t value, std::size_t bytes) noexcept {
  return value % sizeof value == 0 && value >= 4096 && is_readable(value, bytes);
}

std::uintptr_t kind_of_object(std::uintptr_t object) noexcept { return word_at(object) & object_kinds; }

/// False: it is no text.
template <std::size_t Room>
bool add_ruby_text(bounded_text<Room>& to, std::uintptr_t text, bool has_short_texts) noexcept {
  if (!is_object(text, 32) || kind_of_object(text) != text_kind) return false;
  const std::uintptr_t flags = word_at(text);
  std::uintptr_t length = word_at(text + 16), bytes = text + 24;
  if ((flags & text_is_elsewhere) != 0) {
    bytes = word_at(bytes);
  } else if (has_short_texts) {
    length = flags >> 14 & 31;
    bytes = text + 16;
  }
  constexpr std::uintptr_t longest = 1 << 20;
  if (length > longest || (length != 0 && !is_readable(bytes, length))) return false;
  (void)to.add(reinterpret_cast<const char*>(bytes), length);
  return true;
}

}  // namespace

code_range ruby_interpreter::find_in(const exported_symbols& symbols) noexcept {
  const auto find = [&symbols](const char* name, auto*& function) {
    const auto at = reinterpret_cast<std::uintptr_t>(symbols.find(name));
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(at);
    return at != 0;
  };
  const auto* const version = static_cast<const int*>(symbols.find("ruby_api_version"));
  if (version == nullptr || version[0] != 3 || version[1] > 4) return {};
  has_short_texts_ = version[1] < 2;
  const bool has_all = find("ruby_thread_has_gvl_p", holds_lock_) && find("rb_during_gc", is_collecting_) &&
                       find("rb_profile_frames", frames_) && find("rb_profile_frame_label", label_) &&
                       find("rb_profile_frame_path", path_) && find("rb_profile_frame_first_lineno", first_line_) &&
                       find("rb_class_path_cached", name_of_class_);
  return has_all ? symbols.code_of("rb_vm_exec") : code_range{};
}

/// A method has its class before its name, where that has a name: Shop#render.
bool ruby_interpreter::describe(value frame, value label, value path, described_code& is) const noexcept {
  if ((word_at(frame) >> internal_shift & internal_kinds) == method_entry) {
    const value owner = word_at(frame + owner_of_method);
    if (!is_object(owner, sizeof owner) ||
        (kind_of_object(owner) != class_kind && kind_of_object(owner) != module_kind))
      return false;
    if (add_ruby_text(is.name, name_of_class_(owner), has_short_texts_)) (void)is.name.add("#");
  }
  const value first_line = first_line_(frame);
  if ((first_line & 1) != 0) is.first_line = static_cast<std::int32_t>(first_line >> 1);
  return add_ruby_text(is.name, label, has_short_texts_) && add_ruby_text(is.file, path, has_short_texts_);
}

bool ruby_interpreter::walk(memory_reader& by, code_records& codes, interpreted_calls& calls) const noexcept {
  constexpr int most = interpreted_calls::most;
  if (holds_lock_() == 0 || is_collecting_() != 0) return true;
  value frames[most];
  int lines[most];
  const int count = frames_(0, most, frames, lines);
  for (int i = 0; i < count; ++i) {
    if (lines[i] <= 0) {  // a function in C
      calls.end_loop(interpreted_calls::somewhere);
      continue;
    }
    value flags = 0;
    if (!by.word(frames[i], flags) || (flags & object_kinds) != internal_kind) return false;
    const value internal = flags >> internal_shift & internal_kinds;
    if (internal != method_entry && internal != instruction_sequence) return false;
    const value label = label_(frames[i]), path = path_(frames[i]);
    const auto known = codes.find_or_add(frames[i], mixed_into(mixed_into(1, label), path),
                                         [&](described_code& is) { return describe(frames[i], label, path, is); });
    if (!known) return false;
    calls.add(segment::interpreted_call_of(*known, lines[i]));
  }
  calls.end_loop(interpreted_calls::somewhere);
  if (count == most) calls.cut();
  return true;
}

}  // namespace heapwright::probe
