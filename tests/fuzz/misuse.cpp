// libFuzzer: the input is a program that makes mistakes with a hardened heap. Each mistake is told,
// what is right is not, and the heap goes on: a model knows every block's place and contents.
//
// A write after free is told when the block is used again, so some operations later, or never.
#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <heapwright/heap.hpp>

#include "support.hpp"

namespace {

using namespace heapwright;
using namespace heapwright::fuzzing;

unsigned long reports = 0;

/// What is told is counted, not shown.
class quiet {
 public:
  quiet() : kept_(::dup(2)) {
    static const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nowhere, 2);
  }
  ~quiet() {
    ::dup2(kept_, 2);
    ::close(kept_);
  }
  quiet(const quiet&) = delete;
  quiet& operator=(const quiet&) = delete;

 private:
  int kept_;
};

/// False: nothing can be written there, which ends a program at once: the mistake is found. So it
/// is with guard pages and with large blocks that are free, which a short block may be as well: it
/// was long, and stayed where it was when it was resized.
bool scribble(std::byte* at) {
  std::byte changed{};
  const iovec here{&changed, 1}, there{at, 1};
  if (::process_vm_readv(::getpid(), &here, 1, &there, 1, 0) != 1) return false;
  changed ^= std::byte{0x55};
  return ::process_vm_writev(::getpid(), &here, 1, &there, 1, 0) == 1;
}

class program {
  static constexpr std::size_t usual_alignment = 16;
  /// The longest block, with its seal, that is cut from a span when it is allocated; by resizing it
  /// may get a cache line more. A longer one may have a guard page, or no page once it is free.
  static constexpr std::size_t longest_of_span = hardened_recipe.spans.largest_cut - sizeof(std::uint64_t);

 public:
  void run(input operations) {
    for_each_operation(operations, [this](const operation& o) {
      step(o);
      require(reports == told_);
    });
    while (!known_.empty()) release(known_.latest());
    heap_.trim();
    take_late_reports();
    require(reports == told_);
  }

 private:
  using tested = heap<hardened_recipe>;

  void step(const operation& o) {
    const std::size_t size = o.size(20);
    const bool is_wrong = o.code % 4 == 3;
    if (is_wrong && !known_.empty()) {
      const quiet while_it_is_told;
      return make_mistake(o, size);
    }
    const unsigned long before = reports;
    switch (o.code / 4 % 8) {
      case 0:
      case 1:
      case 2: add(heap_.allocate(size), {size, usual_alignment}, o.pattern); break;
      case 3: {
        const layout l{size, std::size_t{1} << (o.b % 13)};
        add(heap_.allocate(l), l, o.pattern);
        break;
      }
      case 4: {
        void* const p = heap_.allocate_zeroed(size);
        require(p == nullptr || filled_with(p, size, 0));
        add(p, {size, usual_alignment}, o.pattern);
        break;
      }
      case 5:
        if (!known_.empty()) release(pick(o));
        break;
      case 6:
        if (known_.empty()) break;
        if (void* const moved = heap_.reallocate(pick(o).at, size)) {
          known_.remove(pick(o), moved, size);
          add(moved, {size, usual_alignment}, o.pattern);
        }
        break;
      default: heap_.trim();
    }
    if (reports != before) take_late_reports();
  }

  void make_mistake(const operation& o, std::size_t size) {
    const model::block& b = pick(o);
    switch (o.code / 4 % 8) {
      case 0: return free_again();
      case 1: return is_told([&] { heap_.deallocate(b.at + 1 + o.b % b.of.size); });
      case 2: return is_told([&] { require(heap_.reallocate(b.at + 1 + o.b % b.of.size, size) == nullptr); });
      case 3: {
        alignas(16) std::byte not_of_the_heap[64];
        return is_told([&] { heap_.deallocate(not_of_the_heap + o.a % 48); });
      }
      case 4: {
        const model::block freed = known_.remove(b);
        return is_told([&] { heap_.deallocate(freed.at, {freed.of.size + 1 + o.a, freed.of.alignment}); });
      }
      case 5: {
        if (b.of.size > longest_of_span) return;
        const model::block lost = known_.remove(b);
        if (!scribble(lost.at + lost.of.size)) return heap_.deallocate(lost.at);
        return is_told([&] { heap_.deallocate(lost.at); });
      }
      case 6: return write_after_free(o, known_.remove(b));
      default: {
        // What lies before it may be another block's.
        if (b.of.size <= longest_of_span + cache_line || is_aligned(b.at, heap_page)) return;
        const model::block freed = known_.remove(b);
        if (!scribble(freed.at - 1)) return heap_.deallocate(freed.at);
        return is_told([&] { heap_.deallocate(freed.at); });
      }
    }
  }

  /// Which may be where another block is live by now.
  void free_again() {
    if (freed_ == nullptr) return;
    for (std::size_t i = 0; i < known_.size(); ++i) {
      if (known_[i].at == freed_) return;
    }
    is_told([&] { heap_.deallocate(freed_); });
  }

  void write_after_free(const operation& o, const model::block& of) {
    heap_.deallocate(of.at);
    if (of.of.size > longest_of_span) return;
    // Where a free list has its link there is another kind of end.
    const std::size_t at = sizeof(void*) + o.b;
    if (at >= of.of.size) return;
    if (!scribble(of.at + at)) return;
    ++written_after_free_;
    heap_.trim();
    take_late_reports();
  }

  template <class Mistake>
  void is_told(Mistake mistake) {
    take_late_reports();
    const unsigned long before = reports;
    mistake();
    require(reports > before);
    told_ = reports;
  }

  /// Reports of writes after free, each of which is told once at most.
  void take_late_reports() {
    require(reports - told_ <= written_after_free_);
    written_after_free_ -= reports - told_;
    told_ = reports;
  }

  [[nodiscard]] const model::block& pick(const operation& o) const { return known_[o.choice(known_.size())]; }

  void add(void* p, layout l, unsigned char pattern) {
    if (p == nullptr) return;
    require(heap_.usable_size(p) >= l.size);
    known_.add(p, l, pattern);
  }

  void release(const model::block& chosen) {
    freed_ = known_.remove(chosen).at;
    heap_.deallocate(freed_);
  }

  tested heap_{"fuzzed"};
  model known_;
  void* freed_ = nullptr;
  unsigned long told_ = reports;
  unsigned long written_after_free_ = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  the_misuse_policy.goes_on = true;
  the_misuse_policy.listener = [](const char*) noexcept { ++reports; };
  program().run({data, length});
  return 0;
}
