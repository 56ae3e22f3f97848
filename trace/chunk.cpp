#include "chunk.hpp"

#include <bit>
#include <cstring>
#include <new>

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <zstd.h>

#include "trace.hpp"

namespace heapwright::trace {

static_assert(std::endian::native == std::endian::little, "heads are copied as they are");

std::array<std::byte, 16> file_beginning() noexcept {
  std::array<std::byte, 16> bytes{};
  std::memcpy(bytes.data(), file_mark.data(), file_mark.size());
  std::memcpy(bytes.data() + file_mark.size(), &version, sizeof version);
  return bytes;
}

std::uint64_t hash_of(const chunk_head& head, std::span<const std::byte> packed) noexcept {
  const XXH64_hash_t of_head = XXH3_64bits(&head, offsetof(chunk_head, hash));
  return XXH3_64bits_withSeed(packed.data(), packed.size(), of_head);
}

chunk_packer::chunk_packer() : context_(ZSTD_createCCtx()) {
  if (context_ == nullptr) throw std::bad_alloc();
}

chunk_packer::~chunk_packer() { ZSTD_freeCCtx(static_cast<ZSTD_CCtx*>(context_)); }

std::span<const std::byte> chunk_packer::pack(chunk_head head, std::span<const std::byte> payload) {
  constexpr int level = 1;
  packed_.resize(sizeof head + ZSTD_compressBound(payload.size()));
  const std::size_t length = ZSTD_compressCCtx(static_cast<ZSTD_CCtx*>(context_), packed_.data() + sizeof head,
                                               packed_.size() - sizeof head, payload.data(), payload.size(), level);
  if (ZSTD_isError(length) != 0) throw std::bad_alloc();  // there is no other reason
  packed_.resize(sizeof head + length);
  head.bytes = static_cast<std::uint32_t>(payload.size());
  head.packed_bytes = static_cast<std::uint32_t>(length);
  head.hash = hash_of(head, std::span(packed_).subspan(sizeof head));
  std::memcpy(packed_.data(), &head, sizeof head);
  return packed_;
}

std::vector<std::byte> unpack(std::span<const std::byte> packed, std::uint32_t bytes) {
  std::vector<std::byte> payload(bytes);
  if (ZSTD_decompress(payload.data(), payload.size(), packed.data(), packed.size()) != bytes) payload.clear();
  return payload;
}

}  // namespace heapwright::trace
