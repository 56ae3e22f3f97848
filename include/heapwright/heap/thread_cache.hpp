// Front of the heap: the free lists of one thread. malloc pops and free pushes here, without locks
// and without atomic read-modify-writes.
//
// The lists are free_lists.hpp; here is what moves blocks between them and the shared heap. All of
// it is off the fast path.
//
//   allocate   pop ── free list empty ── refill
//                ├─ inbox: what others have freed becomes the free list
//                ├─ few deferred frees: fresh blocks, or else
//                │    central free list: blocks that came back, or fresh ones
//                │    page heap: one block of a page-run class
//                └─ deferred frees become the free list
//   free       push ── not kept ── push_slow
//                ├─ remote ── outbox ── batch full ── the owner's inbox
//                └─ no room ── flush to the central free list
//   look       heartbeat ── every few hundred blocks ── scavenge one class
//
// Fresh blocks: the first in a page is handed out as it is, so that the first touch of a page,
// which may cost a page fault and a page of memory, is the program's. Where a page holds many, the
// blocks behind it go into the free list, some at a time.
//
// Remote frees go back to the thread that owns their span, so that two threads do not come to share
// cache lines through the allocator.
//
// Invariant: of a class whose `use` is unused, only the deferred frees and the inbox can have
// blocks; with mixed spans, the free list.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#include <heapwright/heap/block_quarantine.hpp>
#include <heapwright/heap/block_seal.hpp>
#include <heapwright/heap/cache_limits.hpp>
#include <heapwright/heap/free_lists.hpp>
#include <heapwright/heap/large_blocks.hpp>
#include <heapwright/heap/remote_frees.hpp>
#include <heapwright/heap/scavenger.hpp>
#include <heapwright/heap/sealed_blocks.hpp>
#include <heapwright/heap/shared_heap.hpp>

namespace heapwright {

template <const recipe& R, platform OS>
class thread_cache : public free_lists<R, OS>, public registered_cache {
  friend struct heap_describer;

  using lists = free_lists<R, OS>;
  using classes = class_table<R>;
  using limits = cache_limits<R>;
  using shared = shared_heap<R, OS>;
  using caller_mistakes = misuse<R, OS>;
  using links = block_links<R>;

 public:
  /// The empty cache of threads without one of their own. Never written to.
  explicit constexpr thread_cache(const shared& heap) noexcept : lists(heap.map()) {}

  thread_cache(shared& heap, std::uint32_t number) noexcept : lists(heap.map(), number), shared_(&heap) { id = number; }

  using lists::length;
  using lists::offset_of;
  using lists::pop;

  // --- slow steps of free

  /// Frees a block of a class that push did not keep.
  [[gnu::noinline]] void push_slow(block* b, page_tag tag) noexcept {
    const unsigned c = class_of(tag);
    uncount_refused(c);
    if (!caller_mistakes::note_freed(b, *map_)) return;
    wipe(b, c);
    if ((tag ^ owner_) > class_mask) {
      if (classes::is_page_run(c)) return release_page_run(c, b);
      push_remote(b, tag);
    } else {
      heartbeat(of_[c].room == 0 && !classes::is_page_run(c) ? length(c) : weight(c));
      keep(c, b);
    }
  }

  /// The same, of a class with mixed spans.
  [[gnu::noinline]] void push_slow_mixed(block* b, unsigned c) noexcept {
    if (!caller_mistakes::note_freed(b, *map_)) return;
    class_state& s = of_[c];
    s.use.is_used = true;
    const bool is_time_to_count = s.room <= 0;
    push_free(offset_of(c), b);
    if (!is_time_to_count) return;
    heartbeat(static_cast<std::uint32_t>(s.limit) + 1);
    s.room = s.limit - static_cast<std::int32_t>(length_of(s.free_list));
    const std::int32_t surplus = s.limit / 2 - s.room;
    if (surplus > 0 && (classes::is_long(c) || !raise_limit(c))) flush_free(c, surplus);
  }

  // --- slow steps of malloc

  /// A block of class c, whose free list is empty, from the thread's strip; null where a free chunk
  /// may serve as well, or the strip is too short. Then, and of a class without mixed spans, refill
  /// has one. The quicker part of it, without a lock.
  [[nodiscard]] void* cut(unsigned c) noexcept {
    if (!classes::is_mixed(c) || strip_.left() < classes::of(c).size || shared_->has_chunk_for(c)) return nullptr;
    if (scavenger_.count(1)) [[unlikely]]
      return nullptr;
    of_[c].use.is_used = true;
    auto* const b = static_cast<block*>(strip_.cut(classes::of(c).size));
    caller_mistakes::note_allocated(b);
    return b;
  }

  /// A block of class c, whose free list is empty, unless this thread has just taken over a parked
  /// cache. From the inbox, the deferred frees or the shared heap. Null when the system has no
  /// memory.
  [[nodiscard, gnu::noinline]] void* refill(unsigned c) noexcept {
    class_state& s = of_[c];
    if (s.free_list != nullptr) return pop(offset_of(c));
    if (classes::is_mixed(c)) return refill_mixed(c);
    if (take_inbox(c)) return pop(offset_of(c));
    const bool wants_fresh = s.fresh != nullptr && length(c) < enough_deferred(c);
    heartbeat((wants_fresh ? 1 : length(c) + 1) * weight(c));
    s.use.is_used = true;
    if (s.use.is_sparse && length(c) > 0) flush_deferred(c, length(c));
    // A few deferred frees alone would bring the next slow step too soon; they wait until there are
    // more.
    if (length(c) < enough_deferred(c)) {
      if (s.fresh == nullptr) refill_from_shared(c);
      if (s.fresh != nullptr) {
        const std::uint32_t before = s.fresh_count;
        void* const p = pop_fresh(c);
        scavenger_.count_ahead(before - s.fresh_count - 1);
        return p;
      }
    }
    if (s.free_list == nullptr) {
      s.free_list = s.deferred;
      std::atomic_signal_fence(std::memory_order_release);
      s.deferred = nullptr;
      s.room = s.limit;
    }
    return pop(offset_of(c));
  }

  // --- the whole cache

  /// Flushes all blocks to the shared heap, and forgets what the thread needed. The cache can go on
  /// being used.
  [[gnu::noinline]] void flush() noexcept {
    quarantine_.empty([this](unsigned c, block* b) {
      links::set_next(b, nullptr);
      shared_->flush(c, b, 1);
    });
    for (remote_batch& batch : outbox_) post(batch);
    for (unsigned c = 1; c < classes::count; ++c) flush_class(c);
    shared_->take_back(strip_);
  }

  /// The thread ends: what others free of its blocks goes to the central free lists from now on.
  void close_inbox() noexcept {
    is_open.store(false, std::memory_order_seq_cst);
    for (remote_batch& batch : outbox_) post(batch);
    for (unsigned c = 1; c < classes::count; ++c) flush_inbox(*this, c);
  }

  /// Calls f(first block) for each list of remote frees: posted to this thread, and not posted yet.
  /// For a census.
  template <class F>
  [[gnu::no_sanitize_thread]] void for_each_remote(F f) const noexcept {
    for (const remote_inbox& inbox : inbox_) f(inbox.peek());
    for (const remote_batch& batch : outbox_)
      f(static_cast<const block*>(__atomic_load_n(&batch.first, __ATOMIC_RELAXED)));
  }

  [[nodiscard]] block_quarantine<R, OS>& quarantine() noexcept { return quarantine_; }
  [[nodiscard]] const block_quarantine<R, OS>& quarantine() const noexcept { return quarantine_; }

  /// For the places of blocks.
  [[nodiscard]] small_random<OS>& random() noexcept { return random_; }

  [[nodiscard]] const mixed_strip& strip() const noexcept { return strip_; }

  /// True when so little can be here that the next thread may have it.
  [[nodiscard]] bool is_worth_parking() const noexcept {
    return limits_.growth() <= std::int64_t{R.thread_cache.max_parked_bytes};
  }

  /// From now on the cache keeps no more of each class than at first.
  void fix_limits() noexcept { limits_.fix(); }

  /// In the child of a fork, for the cache of a thread that is no more: repairs and flushes
  /// its lists.
  void abandon_after_fork() noexcept {
    lists::repair_after_fork();
    is_open.store(false, std::memory_order_relaxed);
    // Of a batch only the list is whole, if the thread was interrupted.
    for (remote_batch& batch : outbox_) {
      if (block* const first = std::exchange(batch, {}).first)
        shared_->flush(class_of(map_->tag(first)), first, length_of(first));
    }
    strip_.repair();
    flush();
  }

 private:
  using lists::are_many;
  using lists::length_of;
  using lists::map_;
  using lists::of_;
  using lists::owner_;
  using lists::pop_fresh;
  using lists::push_free;
  using lists::set_fresh;
  using lists::uncount_refused;
  using lists::wipe;

  // --- blocks that are freed

  /// A block of this thread's own class c is free.
  void keep(unsigned c, block* b) noexcept {
    class_state& s = of_[c];
    s.use.is_used = true;
    if (s.room == 0 && classes::is_long(c)) {
      if (s.flushed_long < UINT8_MAX) ++s.flushed_long;
      links::set_next(b, nullptr);
      shared_->flush(c, b, 1);
      return;
    }
    if (s.room == 0 && !raise_limit(c)) flush_deferred(c, length(c) / 2 + 1);
    links::set_next(b, s.deferred);
    std::atomic_signal_fence(std::memory_order_release);
    s.deferred = b;
    --s.room;
  }

  /// Another thread's block of a page-run class goes to the page heap at once: it is too long to
  /// wait.
  void release_page_run(unsigned c, block* b) noexcept {
    heartbeat(weight(c));
    shared_->flush(c, b, 1);
  }

  /// Another thread's block goes home with others.
  void push_remote(block* b, page_tag tag) noexcept {
    remote_batch& batch = outbox_.batch_for(tag);
    if (batch.tag != tag) [[unlikely]] {
      post(batch);
      batch.tag = tag;
    }
    if (!caller_mistakes::is_not_last_freed(b, batch.first)) return;
    batch.add<links>(b);
    if (batch.count >= classes::of(class_of(tag)).batch) [[unlikely]]
      post(batch);
  }

  /// Sends a batch to its owner; to the central free list where there is none.
  [[gnu::noinline]] void post(remote_batch& batch) noexcept {
    if (batch.first == nullptr) return;
    const remote_batch sent = std::exchange(batch, {.tag = batch.tag});
    if (!links::is_whole(sent.last)) [[unlikely]]
      caller_mistakes::die_of_link(sent.last, *map_);
    const unsigned c = class_of(sent.tag);
    heartbeat(sent.count);
    auto* const owner = static_cast<thread_cache*>(shared_->caches().find(sent.tag >> owner_shift));
    const bool may_post = owner != nullptr && owner->is_open.load(std::memory_order_relaxed);
    const std::uint32_t waiting = may_post ? owner->inbox_[c].template post<links>(sent) : 0;
    if (waiting == 0) {
      links::set_next(sent.last, nullptr);
      shared_->flush(c, sent.first, sent.count);
    } else if (waiting > limits::most_in_inbox(c) || !owner->is_open.load(std::memory_order_seq_cst)) {
      flush_inbox(*owner, c);
    }
  }

  void flush_inbox(thread_cache& of, unsigned c) noexcept {
    const remote_inbox::list all = of.inbox_[c].take();
    if (all.first != nullptr) shared_->flush(c, all.first, all.count);
  }

  // --- what is here of a class

  /// Frees alone may bring a class here without a slow step.
  [[nodiscard]] bool is_empty(unsigned c) const noexcept {
    const class_state& s = of_[c];
    const bool has_frees = classes::is_mixed(c) ? s.free_list != nullptr : length(c) != 0 || !inbox_[c].is_empty();
    return !s.use.is_used && !s.use.was_used && !has_frees;
  }

  /// Fewer deferred frees than this would bring the next slow step too soon: as many as a refill,
  /// or half as many.
  [[nodiscard]] std::uint32_t enough_deferred(unsigned c) const noexcept {
    return 1 + (are_many(c) ? of_[c].refill_count : of_[c].refill_count / 2U);
  }

  // --- refilling

  /// Blocks that others have freed become the free list. False: there are none.
  bool take_inbox(unsigned c) noexcept {
    if (inbox_[c].is_empty()) return false;
    const remote_inbox::list all = inbox_[c].take();
    of_[c].free_list = all.first;
    of_[c].use.is_used = true;
    scavenger_.count_ahead(all.count);
    return all.first != nullptr;
  }

  /// Long blocks are worth keeping only where they are asked for again: not those that a growing
  /// array leaves behind. So their limit is raised when one is needed after one was not kept.
  void raise_for_long(unsigned c) noexcept {
    if (of_[c].flushed_long > 0 && raise_limit(c)) --of_[c].flushed_long;
  }

  [[nodiscard]] void* refill_mixed(unsigned c) noexcept {
    if (void* const p = cut(c)) return p;
    heartbeat(1);
    of_[c].use.is_used = true;
    raise_for_long(c);
    of_[c].free_list = shared_->refill_mixed(c, classes::of(c).batch, strip_);
    return pop(offset_of(c));
  }

  void refill_from_shared(unsigned c) noexcept {
    class_state& s = of_[c];
    raise_for_long(c);
    if (classes::is_page_run(c)) {
      if (span* const run = shared_->pages().allocate_page_run(c, owner_)) {
        if constexpr (R.hardening.sealed) sealed_blocks<R, OS>(*map_, shared_->keys()).begin_run(*run);
        set_fresh(s, run->block_begin(), 1);
      }
      return;
    }
    const auto& info = classes::of(c);
    const auto wanted = std::max<std::uint16_t>(std::max(s.refill_count, std::min(info.first_kept, info.batch)), 1);
    s.refill_count = std::min<std::uint16_t>(static_cast<std::uint16_t>(wanted * 2), info.batch);
    constexpr std::uint16_t enough_to_shuffle = R.hardening.random_places ? 32 : 0;
    const auto most = std::max(wanted, std::min(info.batch, enough_to_shuffle));
    const auto refilled = shared_->central(c).refill(c, most, owner_, s.attached, shared_->pages());
    s.free_list = refilled.returned;
    if (refilled.fresh == nullptr) return;
    if constexpr (R.hardening.sealed) seal_fresh(refilled.fresh, refilled.fresh_count, info.size);
    if constexpr (caller_mistakes::checks) {
      for (std::uint32_t i = 0; i < refilled.fresh_count; ++i)
        caller_mistakes::note_fresh(reinterpret_cast<block*>(refilled.fresh + i * std::size_t{info.size}));
    }
    if constexpr (R.hardening.random_places) {
      s.free_list = in_random_order(refilled.fresh, refilled.fresh_count, info.size);
      scavenger_.count_ahead(refilled.fresh_count - 1);
    } else {
      set_fresh(s, refilled.fresh, static_cast<std::uint16_t>(refilled.fresh_count));
    }
  }

  /// Blocks that lie side by side are fresh, or free where they are about to be in a free list:
  /// then malloc need not look for their span. In memory that is not zero there may be anything,
  /// and blocks that were free when their span was empty.
  void seal_fresh(std::byte* first, std::uint32_t n, std::size_t size) noexcept {
    const bool is_zero = map_->span_at(first)->zeroed;
    if constexpr (!R.hardening.random_places) {
      if (!is_zero) std::memset(first, 0, n * size);
    } else {
      const block_seal seal(shared_->keys().newest());
      const sealed_blocks<R, OS> blocks(*map_, shared_->keys());
      const std::size_t room = size - block_seal::bytes;
      for (std::byte* at = first; at != first + n * size; at += size) {
        if (is_zero && R.hardening.check_reuse) blocks.check_fresh(at, room);
        if (!is_zero && !(R.hardening.check_reuse && seal.is_free(at, room)))
          std::memset(at, 0, room);
        else if (!is_zero)
          blocks.check_old_link(at);
        seal.write_free(at, room);
      }
    }
  }

  /// A list of `n` blocks that lie side by side: each is put before one that is chosen at random,
  /// or at the front.
  [[nodiscard]] block* in_random_order(std::byte* first, std::uint32_t n, std::size_t size) noexcept {
    block* list = links::make(first, nullptr);
    for (std::uint32_t i = 1; i < n; ++i) {
      auto* const b = reinterpret_cast<block*>(first + i * size);
      const std::size_t place = random_.below(i + 1);
      if (place == i) {
        list = links::make(b, list);
      } else {
        auto* const before = reinterpret_cast<block*>(first + place * size);
        links::set_next(before, links::make(b, links::next(before)));
      }
    }
    return list;
  }

  bool raise_limit(unsigned c) noexcept {
    const heap_figures& f = shared_->figures();
    return limits_.raise(c, limits::share(classes::is_long(c), f.spans + f.large, f.threads), *this);
  }

  // --- flushing

  /// Flushes the newest n deferred frees: they are the ones in the processor's cache. The list is
  /// taken away first, so that a child forked meanwhile by another thread loses blocks rather than
  /// have them twice.
  void flush_deferred(unsigned c, std::uint32_t n) noexcept {
    block* const first = std::exchange(of_[c].deferred, nullptr);
    of_[c].deferred = shared_->flush(c, first, n);
    of_[c].room += static_cast<std::int32_t>(n);
  }

  /// Of a class with mixed spans: flushes the newest n of its free list.
  void flush_free(unsigned c, std::int32_t n) noexcept {
    class_state& s = of_[c];
    if (classes::is_long(c) && s.flushed_long < UINT8_MAX) ++s.flushed_long;
    block* const first = std::exchange(s.free_list, nullptr);
    s.free_list = shared_->flush(c, first, static_cast<std::uint32_t>(n));
    s.room += n;
  }

  /// Flushes all that is here of a class to the shared heap.
  [[gnu::noinline]] void drain(unsigned c) noexcept {
    class_state& s = of_[c];
    flush_inbox(*this, c);
    if (const std::uint32_t n = length(c); n > 0) flush_deferred(c, n);
    caller_mistakes::check_is_end(s.deferred);
    if (block* const first = s.free_list; first != nullptr) {
      s.free_list = nullptr;
      shared_->flush(c, first, length_of(first));
    }
    if (std::byte* const first = s.fresh; first != nullptr) {
      s.fresh = nullptr;
      shared_->central(c).flush_fresh(first, std::exchange(s.fresh_count, std::uint16_t{0}), shared_->pages());
    }
    if (span* const attached = s.attached; attached != nullptr) {
      s.attached = nullptr;
      shared_->central(c).detach(attached, shared_->pages());
    }
    s.use.is_used = s.use.was_used = false;
  }

  void flush_class(unsigned c) noexcept {
    if (!is_empty(c)) drain(c);
    limits_.set(c, limits::first_limit(c), *this);
    of_[c].refill_count = of_[c].flushed_long = 0;
    of_[c].use.is_sparse = false;
  }

  // --- looking at the clock

  /// What a block counts towards the next look.
  static constexpr std::uint32_t weight(unsigned c) noexcept {
    return classes::is_page_run(c) ? classes::of(c).first_pages : 1;
  }

  void heartbeat(std::uint32_t blocks) noexcept {
    if (scavenger_.count(blocks)) [[unlikely]]
      look_at_clock();
  }

  [[gnu::noinline, gnu::cold]] void look_at_clock() noexcept {
    shared_->pages().tick();
    if (!scavenger_.is_in_pass()) begin_pass();
    if (scavenger_.is_in_pass()) scavenge_next_class();
    scavenger_.end_look();
  }

  void begin_pass() noexcept {
    limits_.allow_raises();
    if (scavenger_.is_time_to_fade()) {
      for (class_state& s : of_) s.flushed_long /= 2;
    }
    const std::uint64_t now = OS::milliseconds();
    const std::uint64_t window = shared_->pages().window_ms();
    if (!scavenger_.begin_pass(now, window) || now < window) return;
    shared_->caches().try_flush_parked(now - window,
                                       [](registered_cache& c) { static_cast<thread_cache&>(c).flush(); });
  }

  void scavenge_next_class() noexcept {
    skip_empty_classes();
    if (!scavenger_.is_in_pass()) return;
    const unsigned c = scavenger_.current_class();
    scavenger_.go_on();
    switch (scavenger::step(of_[c].use, [&] { return shared_->is_sparse(c); })) {
      case scavenge_step::keep: break;
      case scavenge_step::drain: drain(c); break;
      case scavenge_step::flush: flush_class(c); break;
    }
    skip_empty_classes();
  }

  void skip_empty_classes() noexcept {
    for (; scavenger_.is_in_pass() && is_empty(scavenger_.current_class()); scavenger_.go_on())
      flush_class(scavenger_.current_class());
  }

  shared* shared_ = nullptr;
  mixed_strip strip_;
  [[no_unique_address]] block_quarantine<R, OS> quarantine_;
  small_random<OS> random_;
  remote_outbox outbox_;
  alignas(cache_line) remote_inbox inbox_[classes::count]{};
  limits limits_;
  scavenger scavenger_{classes::count};
};

}  // namespace heapwright
