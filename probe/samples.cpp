#include "samples.hpp"

#include <cstring>

namespace heapwright::probe {

using namespace trace;

namespace {

thread_local constinit bool holds_all [[gnu::tls_model("initial-exec")]] = false;

std::uintptr_t address_of(const void* p) noexcept { return reinterpret_cast<std::uintptr_t>(p); }

}  // namespace

class sample_table::holding_shard {
 public:
  explicit holding_shard(shard& s) noexcept : shard_(s) {
    if (!holds_all) shard_.guard.acquire();
  }
  ~holding_shard() {
    if (!holds_all) shard_.guard.release();
  }
  holding_shard(const holding_shard&) = delete;
  holding_shard& operator=(const holding_shard&) = delete;

 private:
  shard& shard_;
};

void sample_table::reset(segment_header& h) noexcept {
  part_.reset(at_offset<std::byte>(&h, h.samples_at), h.bytes - h.samples_at, &h.samples_used);
  buckets_ = at_offset<link>(&h, h.sample_index_at);
  mask_ = h.sample_buckets - 1;
  for (auto& s : shards_) s.unused = 0;
  filter_.clear();
}

void sample_table::link_in(sample& s, std::uintptr_t address) noexcept {
  link& bucket = bucket_of(address);
  s.address.store(address, std::memory_order_release);
  s.next.store(bucket.load(std::memory_order_relaxed), std::memory_order_relaxed);
  bucket.store(part_.refer(&s), std::memory_order_release);
}

bool sample_table::add(const void* p, const taken_sample& of) noexcept {
  shard& here = shard_of(address_of(p));
  holding_shard guard(here);
  sample* s = nullptr;
  if (here.unused != 0) {
    s = &at(here.unused);
    here.unused = s->next.load(std::memory_order_relaxed);
  } else {
    s = static_cast<sample*>(part_.take(sizeof(sample)));
  }
  if (s == nullptr) return false;
  s->bytes = of.bytes;
  s->stands_for = of.stands_for.blocks;
  s->bytes_for = of.stands_for.bytes;
  s->at_ns = of.at_ns;
  s->thread_id = of.thread_id;
  s->at_stack = of.at_stack;
  link_in(*s, address_of(p));
  filter_.add(p);
  return true;
}

taken_sample sample_table::take(const void* p) noexcept {
  shard& here = shard_of(address_of(p));
  holding_shard guard(here);
  link* before = &bucket_of(address_of(p));
  for (reference r = before->load(std::memory_order_relaxed); r != 0; r = before->load(std::memory_order_relaxed)) {
    sample& s = at(r);
    if (s.address.load(std::memory_order_relaxed) == address_of(p)) {
      const taken_sample taken{true, s.at_stack, s.thread_id, s.bytes, s.at_ns, {s.stands_for, s.bytes_for}};
      before->store(s.next.load(std::memory_order_relaxed), std::memory_order_relaxed);
      s.address.store(0, std::memory_order_relaxed);
      s.next.store(here.unused, std::memory_order_relaxed);
      here.unused = r;
      filter_.remove(p);
      return taken;
    }
    before = &s.next;
  }
  return {};
}

void sample_table::copy_from(segment_header& other, std::uint64_t until_ns) noexcept {
  const std::uint64_t used = other.samples_used.load(std::memory_order_acquire);
  const auto* const from = at_offset<sample>(&other, other.samples_at);
  for (std::uint64_t i = 0; i < used / sizeof(sample); ++i) {
    const std::uint64_t address = from[i].address.load(std::memory_order_relaxed);
    if (address == 0 || from[i].at_ns > until_ns) continue;
    (void)add(reinterpret_cast<const void*>(address), {true,
                                                       from[i].at_stack,
                                                       from[i].thread_id,
                                                       from[i].bytes,
                                                       from[i].at_ns,
                                                       {from[i].stands_for, from[i].bytes_for}});
  }
}

void sample_table::lock_all() noexcept {
  for (auto& s : shards_) s.guard.acquire();
  part_.fork_lock().acquire();
  holds_all = true;
}

void sample_table::unlock_all() noexcept {
  holds_all = false;
  part_.fork_lock().release();
  for (auto& s : shards_) s.guard.release();
}

void sample_table::reset_locks_in_child() noexcept {
  holds_all = false;
  part_.fork_lock().reset_after_fork();
  for (auto& s : shards_) s.guard.reset_after_fork();
}

}  // namespace heapwright::probe
