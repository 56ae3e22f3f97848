#include "call_frame_info.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

namespace heapwright::unwind {
namespace {

#if defined(__x86_64__)
constexpr std::uint64_t dwarf_stack_pointer = 7, dwarf_frame_pointer = 6;
#elif defined(__aarch64__)
constexpr std::uint64_t dwarf_stack_pointer = 31, dwarf_frame_pointer = 29;
#elif defined(__riscv) && __riscv_xlen == 64
constexpr std::uint64_t dwarf_stack_pointer = 2, dwarf_frame_pointer = 8;
#else
#error "probe: the registers of this processor are not known"
#endif

// How a pointer is written (LSB, "DWARF Exception Header Encoding").
constexpr unsigned omitted = 0xFF, format_mask = 0x0F, relative_mask = 0x70, relative_to_itself = 0x10,
                   relative_to_table = 0x30;

/// Reads what is in memory, one thing after the other. Past the end everything is 0, and it says
/// so.
class table_reader {
 public:
  table_reader(const std::uint8_t* begin, const std::uint8_t* end) noexcept : p_(begin), end_(end) {}

  template <class T>
  T fixed() noexcept {
    T value{};
    if (static_cast<std::size_t>(end_ - p_) < sizeof value) {
      fail();
      return value;
    }
    std::memcpy(&value, p_, sizeof value);
    p_ += sizeof value;
    return value;
  }

  std::uint64_t uleb() noexcept {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = fixed<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7Fu} << shift;
      if ((byte & 0x80) == 0) return value;
    }
  }

  std::int64_t sleb() noexcept {
    std::uint64_t value = 0;
    unsigned shift = 0;
    std::uint8_t byte = 0;
    do {
      byte = fixed<std::uint8_t>();
      if (shift < 64) value |= std::uint64_t{byte & 0x7Fu} << shift;
      shift += 7;
    } while ((byte & 0x80) != 0);
    if (shift < 64 && (byte & 0x40) != 0) value |= ~std::uint64_t{0} << shift;
    return static_cast<std::int64_t>(value);
  }

  std::uintptr_t pointer(unsigned encoding, std::uintptr_t table = 0) noexcept {
    if (encoding == omitted) return 0;
    const auto here = reinterpret_cast<std::uintptr_t>(p_);
    std::uintptr_t value = 0;
    switch (encoding & format_mask) {
      case 0x00: value = fixed<std::uintptr_t>(); break;
      case 0x01: value = uleb(); break;
      case 0x02: value = fixed<std::uint16_t>(); break;
      case 0x03: value = fixed<std::uint32_t>(); break;
      case 0x04: value = fixed<std::uint64_t>(); break;
      case 0x09: value = static_cast<std::uintptr_t>(sleb()); break;
      case 0x0A: value = static_cast<std::uintptr_t>(std::intptr_t{fixed<std::int16_t>()}); break;
      case 0x0B: value = static_cast<std::uintptr_t>(std::intptr_t{fixed<std::int32_t>()}); break;
      case 0x0C: value = static_cast<std::uintptr_t>(fixed<std::int64_t>()); break;
      default: fail(); return 0;
    }
    if ((encoding & relative_mask) == relative_to_itself) value += here;
    if ((encoding & relative_mask) == relative_to_table) value += table;
    return value;
  }

  void skip(std::uint64_t bytes) noexcept {
    if (bytes > static_cast<std::uint64_t>(end_ - p_)) return fail();
    p_ += bytes;
  }

  [[nodiscard]] bool at_end() const noexcept { return p_ >= end_; }
  [[nodiscard]] bool failed() const noexcept { return failed_; }
  [[nodiscard]] const std::uint8_t* here() const noexcept { return p_; }
  [[nodiscard]] const std::uint8_t* end() const noexcept { return end_; }

 private:
  void fail() noexcept {
    failed_ = true;
    p_ = end_;
  }

  const std::uint8_t* p_;
  const std::uint8_t* end_;
  bool failed_ = false;
};

/// What many functions have in common (a "common information entry").
struct common_entry {
  std::uint64_t code_alignment = 1;
  std::int64_t data_alignment = 1;
  std::uint64_t return_register = 0;
  unsigned pointer_encoding = 0;
  bool has_augmentation = false;
  bool is_signal_frame = false;
  table_reader instructions{nullptr, nullptr};
};

/// Reads at `address`, up to the end of the module. A pointer from a table can have any value:
/// outside of the module nothing is there.
table_reader reader_at(const code_object& module, std::uintptr_t address) noexcept {
  const auto* const end = reinterpret_cast<const std::uint8_t*>(module.end);
  return {address < module.begin || address >= module.end ? end : reinterpret_cast<const std::uint8_t*>(address), end};
}

/// An entry of .eh_frame: its contents behind the length, or nothing.
table_reader entry_at(const code_object& module, std::uintptr_t address) noexcept {
  table_reader r = reader_at(module, address);
  std::uint64_t bytes = r.fixed<std::uint32_t>();
  if (bytes == 0xFFFFFFFF) bytes = r.fixed<std::uint64_t>();
  return {r.here(), r.here() + std::min(bytes, static_cast<std::uint64_t>(r.end() - r.here()))};
}

bool read_common_entry(const code_object& module, std::uintptr_t address, common_entry& c) noexcept {
  table_reader r = entry_at(module, address);
  if (r.fixed<std::uint32_t>() != 0) return false;  // it is not a common entry
  const auto version = r.fixed<std::uint8_t>();
  if (version != 1 && version != 3) return false;
  const char* const augmentation = reinterpret_cast<const char*>(r.here());
  while (r.fixed<std::uint8_t>() != 0) {
  }
  if (r.failed()) return false;  // the text does not end
  c.code_alignment = r.uleb();
  c.data_alignment = r.sleb();
  c.return_register = version == 1 ? r.fixed<std::uint8_t>() : r.uleb();
  if (augmentation[0] == 'z') {
    c.has_augmentation = true;
    const std::uint64_t bytes = r.uleb();
    table_reader data(r.here(), r.end());
    r.skip(bytes);
    for (const char* a = augmentation + 1; *a != '\0'; ++a) {
      if (*a == 'R') {
        c.pointer_encoding = data.fixed<std::uint8_t>();
      } else if (*a == 'P') {
        const unsigned encoding = data.fixed<std::uint8_t>();
        (void)data.pointer(encoding);
      } else if (*a == 'L') {
        (void)data.fixed<std::uint8_t>();
      } else if (*a == 'S') {
        c.is_signal_frame = true;
      }
    }
  } else if (augmentation[0] != '\0') {
    return false;
  }
  c.instructions = {r.here(), r.end()};
  return !r.failed();
}

/// Where a register of the caller's is.
struct saved_register {
  enum { unchanged, at_cfa, at_frame_pointer, elsewhere } place = unchanged;
  std::int64_t offset = 0;
};

struct frame_state {
  enum { of_register, of_memory, unknown } cfa = unknown;
  std::uint64_t cfa_register = 0;
  std::int64_t cfa_offset = 0;
  saved_register frame_pointer, return_address;
};

/// Runs the instructions of a table up to the code at `pc`.
class interpreter {
 public:
  interpreter(const common_entry& common, std::uintptr_t begin, std::uintptr_t pc) noexcept
      : common_(common), at_(begin), pc_(pc) {}

  bool run(table_reader r) noexcept {
    while (!r.at_end() && at_ <= pc_) {
      if (!step(r)) return false;
    }
    return !r.failed();
  }

  void begin_function() noexcept { initial_ = now; }

  frame_state now;

 private:
  bool step(table_reader& r) noexcept {
    const auto code = r.fixed<std::uint8_t>();
    const unsigned low = code & 0x3F;
    switch (code & 0xC0) {
      case 0x40: at_ += low * common_.code_alignment; return true;
      case 0x80: save(low, r.uleb()); return true;
      case 0xC0: restore(low); return true;
      default: break;
    }
    switch (code) {
      case 0x00: return true;  // nop
      case 0x01: at_ = r.pointer(common_.pointer_encoding); return true;
      case 0x02: at_ += r.fixed<std::uint8_t>() * common_.code_alignment; return true;
      case 0x03: at_ += r.fixed<std::uint16_t>() * common_.code_alignment; return true;
      case 0x04: at_ += r.fixed<std::uint32_t>() * common_.code_alignment; return true;
      case 0x05: {  // offset_extended
        const std::uint64_t n = r.uleb();
        save(n, r.uleb());
        return true;
      }
      case 0x06: restore(r.uleb()); return true;
      case 0x07: set(r.uleb(), {saved_register::elsewhere}); return true;  // undefined
      case 0x08: set(r.uleb(), {saved_register::unchanged}); return true;  // same_value
      case 0x09: {                                                         // register
        const std::uint64_t n = r.uleb();
        (void)r.uleb();
        set(n, {saved_register::elsewhere});
        return true;
      }
      case 0x0A:  // remember_state
        if (remembered_ == max_remembered) return false;
        stack_[remembered_++] = now;
        return true;
      case 0x0B:  // restore_state
        if (remembered_ == 0) return false;
        now = stack_[--remembered_];
        return true;
      case 0x0C:  // def_cfa
        now.cfa = frame_state::of_register;
        now.cfa_register = r.uleb();
        now.cfa_offset = static_cast<std::int64_t>(r.uleb());
        return true;
      case 0x0D: now.cfa_register = r.uleb(); return true;
      case 0x0E: now.cfa_offset = static_cast<std::int64_t>(r.uleb()); return true;
      case 0x0F: {  // def_cfa_expression
        const offset_expression e = read_expression(r);
        now.cfa = e.is_of_frame_pointer && e.is_dereferenced ? frame_state::of_memory : frame_state::unknown;
        now.cfa_offset = e.offset;
        return true;
      }
      case 0x10: {  // expression
        const std::uint64_t n = r.uleb();
        const offset_expression e = read_expression(r);
        set(n,
            {e.is_of_frame_pointer && !e.is_dereferenced ? saved_register::at_frame_pointer : saved_register::elsewhere,
             e.offset});
        return true;
      }
      case 0x16: {  // val_expression
        const std::uint64_t n = r.uleb();
        r.skip(r.uleb());
        set(n, {saved_register::elsewhere});
        return true;
      }
      case 0x11: {  // offset_extended_sf
        const std::uint64_t n = r.uleb();
        set(n, {saved_register::at_cfa, scaled(static_cast<std::uint64_t>(r.sleb()))});
        return true;
      }
      case 0x12:  // def_cfa_sf
        now.cfa = frame_state::of_register;
        now.cfa_register = r.uleb();
        now.cfa_offset = scaled(static_cast<std::uint64_t>(r.sleb()));
        return true;
      case 0x13: now.cfa_offset = scaled(static_cast<std::uint64_t>(r.sleb())); return true;
      case 0x14:    // val_offset
      case 0x15: {  // val_offset_sf
        const std::uint64_t n = r.uleb();
        (void)r.uleb();
        set(n, {saved_register::elsewhere});
        return true;
      }
      case 0x2D: return true;                  // AARCH64_negate_ra_state: the address is signed, see unwind.cpp
      case 0x2E: (void)r.uleb(); return true;  // GNU_args_size
      default: return false;
    }
  }

  void save(std::uint64_t n, std::uint64_t factored) noexcept { set(n, {saved_register::at_cfa, scaled(factored)}); }

  /// Unsigned, because a product that is too long for a frame must not be undefined behaviour;
  /// as_rule refuses it.
  [[nodiscard]] std::int64_t scaled(std::uint64_t factored) const noexcept {
    return static_cast<std::int64_t>(factored * static_cast<std::uint64_t>(common_.data_alignment));
  }

  void set(std::uint64_t n, saved_register s) noexcept {
    if (n == dwarf_frame_pointer) now.frame_pointer = s;
    if (n == common_.return_register) now.return_address = s;
  }

  void restore(std::uint64_t n) noexcept {
    if (n == dwarf_frame_pointer) now.frame_pointer = initial_.frame_pointer;
    if (n == common_.return_register) now.return_address = initial_.return_address;
  }

  /// The frame pointer plus an offset, or what is there: what compilers write for functions that
  /// align their stack.
  struct offset_expression {
    bool is_of_frame_pointer, is_dereferenced;
    std::int64_t offset;
  };

  static offset_expression read_expression(table_reader& r) noexcept {
    const std::uint64_t bytes = r.uleb();
    table_reader e(r.here(), r.here() + std::min(bytes, static_cast<std::uint64_t>(r.end() - r.here())));
    r.skip(bytes);
    constexpr std::uint8_t breg0 = 0x70, deref = 0x06;
    const bool is_frame_pointer = e.fixed<std::uint8_t>() == breg0 + dwarf_frame_pointer;
    const std::int64_t offset = e.sleb();
    const bool is_dereferenced = !e.at_end() && e.fixed<std::uint8_t>() == deref;
    return {is_frame_pointer && e.at_end() && !e.failed(), is_dereferenced, offset};
  }

  static constexpr unsigned max_remembered = 16;

  const common_entry& common_;
  std::uintptr_t at_;
  std::uintptr_t pc_;
  frame_state initial_;
  frame_state stack_[max_remembered];
  unsigned remembered_ = 0;
};

frame_rule as_rule(const frame_state& s) noexcept {
  const saved_register &fp = s.frame_pointer, &ra = s.return_address;
  frame_rule rule;
  rule.cfa_offset = static_cast<std::int32_t>(s.cfa_offset);
  rule.frame_pointer_at = static_cast<std::int16_t>(fp.offset / 8);
  const bool is_beside = fp.place == saved_register::at_cfa &&
                         static_cast<std::uint64_t>(ra.offset) == static_cast<std::uint64_t>(fp.offset) + 8;
  rule.return_address_at = is_beside ? frame_rule::beside_frame_pointer : static_cast<std::int8_t>(ra.offset / 8);
  const bool fits = s.cfa_offset == rule.cfa_offset && fp.offset == rule.frame_pointer_at * 8 &&
                    ra.offset == rule.return_address_words() * 8;
  if (!fits || ra.place != saved_register::at_cfa || ra.offset >= 0) return rule;
  const bool is_by_cfa =
      fp.place == saved_register::unchanged || (fp.place == saved_register::at_cfa && fp.offset != 0);
  if (s.cfa == frame_state::of_memory && fp.place == saved_register::at_frame_pointer) {
    rule.kind = frame_kind::realigned;
  } else if (s.cfa == frame_state::of_register && s.cfa_register == dwarf_stack_pointer && is_by_cfa) {
    rule.kind = frame_kind::stack_pointer;
  } else if (s.cfa == frame_state::of_register && s.cfa_register == dwarf_frame_pointer && is_by_cfa) {
    rule.kind = frame_kind::frame_pointer;
  }
  return rule;
}

/// The address of the entry of the function around `pc`, by the sorted table of .eh_frame_hdr; 0
/// when there is none.
std::uintptr_t find_function_entry(const code_object& module, std::uintptr_t header, std::uintptr_t pc) noexcept {
  struct pair {
    std::int32_t begin, entry;
  };
  table_reader r = reader_at(module, header);
  const unsigned version = r.fixed<std::uint8_t>(), table_pointer = r.fixed<std::uint8_t>(),
                 count_encoding = r.fixed<std::uint8_t>(), pair_encoding = r.fixed<std::uint8_t>();
  (void)r.pointer(table_pointer, header);
  const std::uintptr_t count = r.pointer(count_encoding, header);
  constexpr unsigned sorted_pairs = relative_to_table | 0x0B;
  if (version != 1 || pair_encoding != sorted_pairs || count == 0 || r.failed() ||
      count > static_cast<std::uintptr_t>(r.end() - r.here()) / sizeof(pair))
    return 0;
  const std::uint8_t* const pairs = r.here();
  const auto pair_at = [&](std::uintptr_t i) {
    pair p;
    std::memcpy(&p, pairs + i * sizeof p, sizeof p);
    return p;
  };
  std::uintptr_t low = 0, high = count;  // the last that begins at pc or before
  while (high - low > 1) {
    const std::uintptr_t middle = low + (high - low) / 2;
    (header + static_cast<std::uintptr_t>(std::intptr_t{pair_at(middle).begin}) <= pc ? low : high) = middle;
  }
  const pair p = pair_at(low);
  if (header + static_cast<std::uintptr_t>(std::intptr_t{p.begin}) > pc) return 0;
  return header + static_cast<std::uintptr_t>(std::intptr_t{p.entry});
}

/// For code that no table describes. What the frame pointer points to, and the return address
/// behind it, lie below the frame; on RISC-V the frame pointer is where the frame begins.
#if defined(__riscv)
constexpr std::int32_t from_frame_pointer = 0;
#else
constexpr std::int32_t from_frame_pointer = 16;
#endif
constexpr frame_rule guess{
    .cfa_offset = from_frame_pointer, .frame_pointer_at = -2, .return_address_at = -1, .kind = frame_kind::guessed};

/// Of Go's function that calls C.
#if defined(__aarch64__)
constexpr frame_rule before_other_stack{
    .frame_pointer_at = -3, .return_address_at = -2, .kind = frame_kind::on_other_stack};
#else
constexpr frame_rule before_other_stack{
    .frame_pointer_at = -2, .return_address_at = -1, .kind = frame_kind::on_other_stack};
#endif

// Go's runtime calls C on a stack that C may use, and leaves the goroutine's as it is. Behind the
// call runtime.asmcgocall takes from its frame there, in three instructions
//
//   the goroutine, whose first words are the bounds of its stack
//   the end of that stack
//   how far below that the stack pointer was
//
// Others lie between or before them: one loads a place in thread-local memory in some builds. So it
// is in Go 1.19 to 1.26. Each piece of code is read only if what is before it is as it should be:
// then code goes on.

constexpr std::int32_t nowhere = -1;

/// Where in the frame the goroutine is, from the stack pointer on; nowhere: this is other code.
#if defined(__x86_64__)
std::int32_t goroutine_at(std::uintptr_t return_address) noexcept {
  const auto* code = reinterpret_cast<const std::uint8_t*>(return_address);
  const auto follow = [&code](auto... bytes) {
    const auto* p = code;
    if (!((*p++ == bytes) && ...)) return false;
    code = p;
    return true;
  };
  if (follow(0x48, 0xc7, 0xc1) || follow(0x48, 0x8b, 0x0d)) code += 4;
  if (!follow(0x48, 0x8b, 0x7c, 0x24)) return nowhere;  // mov AT(%rsp), %rdi
  const std::int32_t at = *code++;
  if (at < 8 || at > 127 || !follow(0x48, 0x8b, 0x77, 0x08, 0x48, 0x2b)) return nowhere;  // mov 8(%rdi), %rsi
  return (at == 8 ? follow(0x34, 0x24) : follow(0x74, 0x24, at - 8)) ? at : nowhere;      // sub AT-8(%rsp), %rsi
}
#elif defined(__aarch64__)
std::int32_t goroutine_at(std::uintptr_t return_address) noexcept {
  const auto* const code = reinterpret_cast<const std::uint32_t*>(return_address);
  if (code[0] != 0xaa0003e9 || code[1] != 0xf94003fc) return nowhere;  // mov x9, x0; ldr x28, [sp]
  if (code[2] >> 26 != 0x25) return nowhere;                           // bl runtime.save_g
  const bool is_it = code[3] == 0xf9400785 && code[4] == 0xf94007e6;   // ldr x5, [x28, #8]; ldr x6, [sp, #8]
  return is_it && code[5] == 0xcb0600a5 ? 0 : nowhere;                 // sub x5, x5, x6
}
#else
std::int32_t goroutine_at(std::uintptr_t) noexcept { return nowhere; }
#endif

/// Of code that the file's tables do not describe. `pc` is the call's last byte.
frame_rule guess_in(const code_object& module, std::uintptr_t pc) noexcept {
  constexpr std::uintptr_t longest = 24;  // of what is looked at behind the call
  if (pc + longest >= module.end) return guess;
  const std::int32_t at = goroutine_at(pc + 1);
  if (at == nowhere) return guess;
  frame_rule rule = before_other_stack;
  rule.cfa_offset = at;
  return rule;
}

/// By the module's tables, whose .eh_frame_hdr is at `header`. Reads nothing outside of the module,
/// whatever they say.
frame_rule rule_in(const code_object& module, std::uintptr_t header, std::uintptr_t pc) noexcept {
  const std::uintptr_t entry = find_function_entry(module, header, pc);
  if (entry == 0) return guess_in(module, pc);
  table_reader r = entry_at(module, entry);
  const auto common_pointer = reinterpret_cast<std::uintptr_t>(r.here());
  common_entry common;
  if (!read_common_entry(module, common_pointer - r.fixed<std::uint32_t>(), common) || common.is_signal_frame)
    return {};
  const std::uintptr_t begin = r.pointer(common.pointer_encoding);
  const std::uintptr_t length = r.pointer(common.pointer_encoding & format_mask);
  if (pc - begin >= length) return guess_in(module, pc);
  if (common.has_augmentation) r.skip(r.uleb());
  interpreter run(common, begin, pc);
  if (!run.run(common.instructions)) return {};
  run.begin_function();
  if (!run.run(r)) return {};
  return as_rule(run.now);
}

}  // namespace

frame_rule find_frame_rule(std::uintptr_t pc, code_object& object) noexcept {
  object = {0, 0, 0, ""};
  const std::uint8_t* const header = find_code_object(pc, object);
  if (header != nullptr) return rule_in(object, reinterpret_cast<std::uintptr_t>(header), pc);
  if (object.begin != 0) return {};
  return guess;
}

}  // namespace heapwright::unwind
