#include "python_codes.hpp"

#include <algorithm>
#include <cstring>

#include <heapwright/core/hash.hpp>
#include <heapwright/platform/linux/linux_os.hpp>

#include "../unwind/frame.hpp"
#include "readable.hpp"

namespace heapwright::probe {

using namespace segment;
using unwind::word_at;

namespace {

/// What says that it is still the same code.
std::uint64_t version_of(std::uintptr_t code, const python_layout& layout) noexcept {
  std::uint64_t hash = 1;
  for (const unsigned field : {layout.file_name, layout.name, layout.line_table, layout.first_line})
    hash = fibonacci_hash(hash ^ word_at(code + field)) ^ hash >> 32;
  return hash;
}

/// One of Python's texts, as UTF-8; cut where it is longer than there is room.
template <std::size_t Room>
class utf8_text {
 public:
  [[nodiscard]] const char* data() const noexcept { return bytes_; }
  [[nodiscard]] std::uint32_t size() const noexcept { return size_; }

  /// False: there is no text.
  bool read(std::uintptr_t at, const python_layout& layout, std::uintptr_t text_type) noexcept {
    if (!is_readable(at, layout.other_text) || word_at(at + layout.type) != text_type) return false;
    shape is;
    if (!is.read(at + layout.text_state)) return false;
    const std::uint64_t length = std::min<std::uint64_t>(word_at(at + layout.text_length), Room);
    const std::uintptr_t characters = at + (is.is_ascii ? layout.ascii_text : layout.other_text);
    if (length > 0 && !is_readable(characters, length * is.character_bytes)) return false;
    for (std::uint64_t i = 0; i < length; ++i) {
      std::uint32_t character = 0;
      std::memcpy(&character, reinterpret_cast<const void*>(characters + i * is.character_bytes), is.character_bytes);
      if (!add(character)) break;
    }
    return true;
  }

 private:
  /// From the state of a text: two bits, or a byte, that are of no concern here, three with the
  /// bytes of a character, one that is set where the characters follow, and one for ASCII alone.
  struct shape {
    unsigned character_bytes = 0;
    bool is_ascii = false;

    bool read(std::uintptr_t state_at) noexcept {
      std::uint32_t state = 0;
      std::memcpy(&state, reinterpret_cast<const void*>(state_at), sizeof state);
      for (const unsigned skipped : {2U, 8U, 16U}) {
        const std::uint32_t bits = state >> skipped;
        character_bytes = bits & 7;
        is_ascii = (bits & 16) != 0;
        const bool follow = (bits & 8) != 0;
        if (follow && (character_bytes == 1 || character_bytes == 2 || character_bytes == 4)) return true;
      }
      return false;
    }
  };

  bool add(std::uint32_t c) noexcept {
    if (size_ + 4 > Room) return false;
    const auto put = [this](std::uint32_t byte) { bytes_[size_++] = static_cast<char>(byte); };
    const auto put_rest = [&](unsigned shift) { put(0x80 | (c >> shift & 0x3f)); };
    if (c < 0x80) {
      put(c);
    } else if (c < 0x800) {
      put(0xc0 | c >> 6);
      put_rest(0);
    } else if (c < 0x10000) {
      put(0xe0 | c >> 12);
      put_rest(6);
      put_rest(0);
    } else {
      put(0xf0 | (c >> 18 & 7));
      put_rest(12);
      put_rest(6);
      put_rest(0);
    }
    return true;
  }

  char bytes_[Room];
  std::uint32_t size_ = 0;
};

/// Code as it goes into its record.
struct readable_code {
  utf8_text<256> name;
  utf8_text<1024> file;
  std::int32_t first_line = 0;
  std::uintptr_t table = 0;
  std::uint32_t table_bytes = 0;  ///< 0: none that can be kept

  /// False: it is no code.
  bool read(std::uintptr_t code, const python_layout& layout, std::uintptr_t text_type) noexcept {
    constexpr std::uint64_t longest_table = 4 << 20;  // of a million lines
    if (!is_readable(code, layout.line_table + sizeof table)) return false;
    if (!name.read(word_at(code + layout.name), layout, text_type) ||
        !file.read(word_at(code + layout.file_name), layout, text_type))
      return false;
    std::memcpy(&first_line, reinterpret_cast<const void*>(code + layout.first_line), sizeof first_line);
    const std::uintptr_t bytes = word_at(code + layout.line_table);
    if (!is_readable(bytes, layout.bytes)) return false;
    const std::uint64_t count = word_at(bytes + layout.byte_count);
    if (count > longest_table) first_line = 0;  // the function's first line would pass for the right one
    if (count == 0 || count > longest_table || !is_readable(bytes + layout.bytes, count)) return true;
    table = bytes + layout.bytes;
    table_bytes = static_cast<std::uint32_t>(count);
    return true;
  }

  [[nodiscard]] reference write(growing_part& part, line_table lines) const noexcept {
    auto* const record =
        static_cast<python_code*>(part.take(python_code_length(name.size(), file.size(), table_bytes)));
    if (record == nullptr) return 0;
    record->first_line = first_line;
    record->name_bytes = name.size();
    record->file_bytes = file.size();
    record->table_bytes = table_bytes;
    auto* at = reinterpret_cast<char*>(record + 1);
    std::memcpy(at, name.data(), name.size());
    std::memcpy(at += name.size(), file.data(), file.size());
    if (table_bytes != 0) std::memcpy(at + file.size(), reinterpret_cast<const void*>(table), table_bytes);
    record->lines.store(static_cast<std::uint32_t>(lines), std::memory_order_release);
    return part.refer(record);
  }
};

}  // namespace

void python_codes::reset(segment_header& h) noexcept {
  part_.reset(at_offset<std::byte>(&h, h.python_codes_at), h.threads_at - h.python_codes_at, &h.python_codes_used);
}

void python_codes::inherit_from(segment_header& parents) noexcept {
  if (used_at_fork_ == 0) return;
  if (void* const records = part_.take(used_at_fork_)) {
    std::memcpy(records, at_offset<std::byte>(&parents, parents.python_codes_at), used_at_fork_);
  } else if (entry* const known = entries_.exchange(nullptr)) {  // it has records that are not here
    linux_os::unmap(known, entry_count * sizeof(entry));
  }
}

std::optional<reference> python_codes::find_or_add(std::uintptr_t code, const python_layout& layout,
                                                   std::uintptr_t text_type) noexcept {
  const std::uint64_t version = version_of(code, layout);
  const std::size_t first = fibonacci_hash(code >> 4) >> (64 - 16);
  static_assert(entry_count == 1 << 16);
  /// The code's entry, or the one that is free for it; null: too many are in the way.
  const auto find = [&](entry* entries) noexcept -> entry* {
    for (unsigned step = 0; step < most_steps; ++step) {
      entry& e = entries[(first + step) % entry_count];
      const std::uintptr_t is = e.code.load(std::memory_order_acquire);
      if (is == 0 || (is == code && e.version == version)) return &e;
    }
    return nullptr;
  };
  if (entry* const entries = entries_.load(std::memory_order_acquire)) [[likely]] {
    const entry* const known = find(entries);
    if (known == nullptr) return 0;
    // A free entry may have become another code's meanwhile.
    if (known->code.load(std::memory_order_acquire) == code && known->version == version) return known->at;
  }
  readable_code is;
  if (!is.read(code, layout, text_type)) return std::nullopt;
  holding guard(lock_);
  entry* entries = entries_.load(std::memory_order_relaxed);
  if (entries == nullptr) {
    entries = static_cast<entry*>(linux_os::map(entry_count * sizeof(entry)));
    if (entries == nullptr) return 0;
    entries_.store(entries, std::memory_order_release);
  }
  entry* const own = find(entries);
  if (own == nullptr) return 0;
  if (own->code.load(std::memory_order_relaxed) != 0) return own->at;  // another thread was faster
  const reference at = is.write(part_, layout.lines);
  own->version = version;
  own->at = at;
  own->code.store(code, std::memory_order_release);
  return at;
}

void python_codes::lock_for_fork() noexcept {
  lock_.acquire();
  part_.fork_lock().acquire();
  used_at_fork_ = part_.used();
}

void python_codes::unlock_in_parent() noexcept {
  part_.fork_lock().release();
  lock_.release();
}

void python_codes::unlock_in_child() noexcept {
  part_.fork_lock().reset_after_fork();
  lock_.reset_after_fork();
}

}  // namespace heapwright::probe
