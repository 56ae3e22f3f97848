#include "code_records.hpp"

#include <heapwright/platform/linux/linux_os.hpp>

namespace heapwright::probe {

using segment::interpreted_code;
using segment::reference;
using segment::segment_header;

void code_records::reset(segment_header& h) noexcept {
  part_.reset(at_offset<std::byte>(&h, h.codes_at), h.threads_at - h.codes_at, &h.codes_used);
}

void code_records::inherit_from(segment_header& parents) noexcept {
  if (used_at_fork_ == 0) return;
  if (void* const records = part_.take(used_at_fork_)) {
    std::memcpy(records, at_offset<std::byte>(&parents, parents.codes_at), used_at_fork_);
  } else if (entry* const known = entries_.exchange(nullptr)) {  // it has records that are not here
    linux_os::unmap(known, entry_count * sizeof(entry));
  }
}

/// The code's entry, or the one that is free for it; null: too many are in the way.
code_records::entry* code_records::place_in(entry* entries, std::uintptr_t code, std::uint64_t version) noexcept {
  const std::size_t first = fibonacci_hash(code >> 4) >> (64 - 16);
  static_assert(entry_count == 1 << 16);
  for (unsigned step = 0; step < most_steps; ++step) {
    entry& e = entries[(first + step) % entry_count];
    const std::uintptr_t is = e.code.load(std::memory_order_acquire);
    if (is == 0 || (is == code && e.version == version)) return &e;
  }
  return nullptr;
}

std::optional<reference> code_records::find(std::uintptr_t code, std::uint64_t version) const noexcept {
  entry* const entries = entries_.load(std::memory_order_acquire);
  if (entries == nullptr) return std::nullopt;
  const entry* const known = place_in(entries, code, version);
  if (known == nullptr) return 0;
  // A free entry may have become another code's meanwhile.
  if (known->code.load(std::memory_order_acquire) == code && known->version == version) return known->at;
  return std::nullopt;
}

reference code_records::add(std::uintptr_t code, std::uint64_t version, const described_code& is) noexcept {
  holding guard(lock_);
  entry* entries = entries_.load(std::memory_order_relaxed);
  if (entries == nullptr) {
    entries = static_cast<entry*>(linux_os::map(entry_count * sizeof(entry)));
    if (entries == nullptr) return 0;
    entries_.store(entries, std::memory_order_release);
  }
  entry* const own = place_in(entries, code, version);
  if (own == nullptr) return 0;
  if (own->code.load(std::memory_order_relaxed) != 0) return own->at;  // another thread was faster
  own->at = write(is);
  own->version = version;
  own->code.store(code, std::memory_order_release);
  return own->at;
}

reference code_records::write(const described_code& is) noexcept {
  auto* const record = static_cast<interpreted_code*>(
      part_.take(segment::interpreted_code_length(is.name.size(), is.file.size(), is.table_bytes)));
  if (record == nullptr) return 0;
  record->first_line = is.first_line;
  record->name_bytes = is.name.size();
  record->file_bytes = is.file.size();
  record->table_bytes = is.table_bytes;
  auto* at = reinterpret_cast<char*>(record + 1);
  std::memcpy(at, is.name.data(), is.name.size());
  std::memcpy(at += is.name.size(), is.file.data(), is.file.size());
  if (is.table_bytes != 0) std::memcpy(at + is.file.size(), reinterpret_cast<const void*>(is.table), is.table_bytes);
  record->lines.store(static_cast<std::uint32_t>(is.lines), std::memory_order_release);
  return part_.refer(record);
}

void code_records::lock_for_fork() noexcept {
  lock_.acquire();
  part_.fork_lock().acquire();
  used_at_fork_ = part_.used();
}

void code_records::unlock_in_parent() noexcept {
  part_.fork_lock().release();
  lock_.release();
}

void code_records::unlock_in_child() noexcept {
  part_.fork_lock().reset_after_fork();
  lock_.reset_after_fork();
}

}  // namespace heapwright::probe
