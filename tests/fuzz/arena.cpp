// libFuzzer: the input is a program for three arenas: without a buffer, with one, and with that of
// a stack_arena. A model knows every block's place and contents.
//
// The model states what the documentation promises of the figures:
//   allocation   takes the rounded size, and padding of less than the alignment
//   free         of the latest block: in_use is what it was before the block came, but if a mark
//                was made since, more may stay in use. Of any other block: no change
//   rewind       in_use is what it was at the mark; nothing drawn since is held
#include <heapwright/allocator/stack_arena.hpp>

#include "support.hpp"

namespace {

using namespace heapwright;
using namespace heapwright::fuzzing;

using shared = upstream<source<>>;

class program {
 public:
  /// An arena at the beginning of its life, whose own memory, if it has any, lies in `home`.
  program(arena<shared>& tested, source<>& memory, std::span<const std::byte> home)
      : tested_(tested), memory_(memory), home_(home), buffer_bytes_(tested.stats().held) {}

  void run(input operations) {
    for_each_operation(operations, [this](const operation& o) {
      step(o);
      audit();
    });
    if (operations.size() % 2 == 0) {
      reset();
      trim();
      require(memory_.held() == 0);
    }
  }

 private:
  /// A block whose room is in use. The last one is the latest block.
  struct entry {
    const std::byte* at;
    std::size_t in_use_before;
    std::size_t room;  ///< its rounded size when it was last the latest block
    bool marked;       ///< a mark was made since
  };

  struct moment {
    arena<shared>::mark_type mark;
    arena_stats stats;
    std::vector<entry> latest;
    std::size_t blocks;  ///< that had been added
  };

  void step(const operation& o) {
    const std::size_t size = o.size(15) - (o.a >= 128 ? 1 : 0);
    switch (o.code % 8) {
      case 0:
      case 1: allocate({size, std::size_t{1} << (o.code / 8 % 4)}, o.pattern); break;
      case 2: allocate({size, std::size_t{1} << (o.b % 13)}, o.pattern); break;
      case 3:
        if (!known_.empty()) release(pick(o));
        break;
      case 4:
        if (!known_.empty()) resize(pick(o), size, o.pattern);
        break;
      case 5:
        marks_.push_back({tested_.mark(), tested_.stats(), latest_, known_.added()});
        for (entry& e : latest_) e.marked = true;
        break;
      case 6:
        if (!marks_.empty()) rewind(o.choice(marks_.size()));
        break;
      default:
        switch (o.a % 4) {
          case 0: reset(); break;
          case 1: trim(); break;
          case 2: memory_.allow(o.b < 128 ? o.b % 4 : SIZE_MAX); break;
          default:
            refuse({SIZE_MAX >> (o.b % 32), std::size_t{1} << (o.pattern % 64)});
            refuse({size, std::size_t{1} << (40 + o.b % 24)});
        }
    }
  }

  void audit() const {
    const arena_stats s = tested_.stats();
    require(s.held == buffer_bytes_ + memory_.held() && s.chunks == memory_.ranges());
    require(s.in_use <= s.held);
  }

  [[nodiscard]] const model::block& pick(const operation& o) const {
    return o.code < 128 ? known_.latest() : known_[o.choice(known_.size())];
  }

  [[nodiscard]] static std::size_t rounded(std::size_t size) {
    return align_up(std::max<std::size_t>(size, 1), arena<shared>::grain);
  }

  [[nodiscard]] static bool same(const arena_stats& a, const arena_stats& b) {
    return a.in_use == b.in_use && a.held == b.held && a.chunks == b.chunks;
  }

  [[nodiscard]] bool is_latest(const model::block& b) const {
    return !latest_.empty() && latest_.back().at == b.at && latest_.back().room == rounded(b.of.size);
  }

  void allocate(layout l, unsigned char pattern) {
    const arena_stats before = tested_.stats();
    const std::size_t refusals = memory_.refusals();
    auto* const p = static_cast<std::byte*>(tested_.allocate(l));
    const arena_stats after = tested_.stats();
    if (p == nullptr) {
      require(memory_.refusals() != refusals && same(before, after));
      return;
    }
    const std::size_t taken = after.in_use - before.in_use;
    require(taken >= rounded(l.size) && taken < rounded(l.size) + l.alignment);
    require(tested_.owns(p) && tested_.owns(p + rounded(l.size) - 1));
    const bool at_home = address_of(p) - address_of(home_.data()) < home_.size();
    require(tested_.in_buffer(p) == at_home && memory_.contains(p, rounded(l.size)) != at_home);
    known_.add(p, l, pattern);
    latest_.push_back({p, before.in_use, rounded(l.size), false});
  }

  void refuse(layout l) {
    const arena_stats before = tested_.stats();
    require(tested_.allocate(l) == nullptr && same(before, tested_.stats()));
  }

  void release(const model::block& chosen) {
    const bool latest = is_latest(chosen);
    const model::block known = known_.remove(chosen);
    const std::size_t before = tested_.stats().in_use;
    tested_.deallocate(known.at, known.of);
    const std::size_t now = tested_.stats().in_use;
    if (!latest) return require(now == before);
    const entry e = latest_.back();
    require(e.marked ? now <= before && now >= e.in_use_before : now == e.in_use_before);
    latest_.pop_back();
  }

  void resize(const model::block& chosen, std::size_t size, unsigned char pattern) {
    const bool latest = is_latest(chosen), certain = latest && !latest_.back().marked;
    const layout from = chosen.of, to{size, from.alignment};
    const std::size_t in_use = tested_.stats().in_use;
    const bool resized = tested_.try_resize(chosen.at, from, to);
    const std::size_t now = tested_.stats().in_use;
    require(resized ? latest || size <= from.size : size > from.size);
    if (!resized || !latest) require(now == in_use);
    if (!resized) return;
    // Added anew, because a block that grew lies across the marks that were made before.
    auto* const p = chosen.at;
    known_.remove(chosen, p, size);
    known_.add(p, to, pattern);
    if (!latest) return;
    if (certain || now != in_use) {
      require(now - in_use == rounded(size) - rounded(from.size));
      latest_.back().room = rounded(size);
    }
  }

  void rewind(std::size_t i) {
    marks_.erase(marks_.begin() + static_cast<std::ptrdiff_t>(i) + 1, marks_.end());
    const moment& m = marks_.back();
    known_.remove_since(m.blocks);
    tested_.rewind(m.mark);
    const arena_stats now = tested_.stats();
    require(now.in_use == m.stats.in_use && now.held <= m.stats.held && now.chunks <= m.stats.chunks);
    latest_ = m.latest;
    for (entry& e : latest_) e.marked = true;
  }

  void reset() {
    const std::byte* const latest = known_.empty() ? nullptr : known_.latest().at;
    known_.remove_since(0);
    marks_.clear();
    tested_.reset();
    require(tested_.stats().in_use == 0 && memory_.ranges() <= 1);
    require(!tested_.owns(latest));
    latest_.clear();
  }

  void trim() {
    const arena_stats before = tested_.stats();
    const std::size_t bytes = tested_.trim();
    const arena_stats after = tested_.stats();
    require(before.held - after.held == bytes && before.in_use == after.in_use);
    // A mark may be in the chunk that is gone.
    if (bytes > 0) marks_.clear();
  }

  arena<shared>& tested_;
  source<>& memory_;
  std::span<const std::byte> home_;
  std::size_t buffer_bytes_;
  model known_;
  std::vector<moment> marks_;
  std::vector<entry> latest_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  if (length < operation::bytes) return 0;
  const operation plan{input(data, length)};
  const input operations = input(data, length).subspan(operation::bytes);
  source<> memory(1 * MiB);
  {
    arena<shared> a(memory, plan.size(17));
    program(a, memory, {}).run(operations);
  }
  memory.allow(SIZE_MAX);
  {
    alignas(64) static std::byte buffer[16 * KiB];
    const auto part = std::span(buffer).subspan(plan.pattern % 64, plan.size(13));
    arena<shared> a(part, memory);
    program(a, memory, part).run(operations);
  }
  memory.allow(SIZE_MAX);
  {
    stack_arena<1000, shared> a(memory);
    program(a, memory, std::as_bytes(std::span(&a, 1))).run(operations);
  }
  return 0;
}
