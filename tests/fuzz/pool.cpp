// libFuzzer: the input is a program for three pools. One has blocks of any layout and a source of
// its own; two, one of them of objects, draw their chunks from a fourth and hand them on to each
// other through it. Beside what equal_blocks.hpp checks, every chunk that the fourth has handed out
// must be with one of the two, and a constructor that throws must not lose its block.
#include <heapwright/allocator/object_pool.hpp>
#include <heapwright/allocator/pool.hpp>

#include "equal_blocks.hpp"

namespace {

using namespace heapwright;
using namespace heapwright::fuzzing;

using chunk_pool = pool<upstream<source<>>>;
using chunk_source = source<upstream<chunk_pool>>;

struct alignas(32) object {
  struct failure {};

  explicit object(bool fails) {
    if (fails) throw failure{};
  }

  std::byte contents[96];
};

/// As an allocator, so that the same program can run on it.
struct objects : object_pool<object, upstream<chunk_source>> {
  using object_pool<object, upstream<chunk_source>>::object_pool;

  void* allocate(layout) noexcept {
    if (++made_ % 16 == 0) make_none();
    return make(false);
  }

  void deallocate(void* p) noexcept { destroy(static_cast<object*>(p)); }
  void deallocate(void* p, layout) noexcept { deallocate(p); }
  [[nodiscard]] std::size_t usable_size(const void*) const noexcept { return sizeof(object); }

 private:
  void make_none() noexcept {
    try {
      require(make(true) == nullptr);
    } catch (object::failure) {
    }
  }

  std::size_t made_ = 0;
};

class program {
  static constexpr std::size_t limit = 512 * KiB;
  static constexpr std::size_t shared_bytes = 4 * KiB;

 public:
  explicit program(const operation& plan)
      : of_(any_layout(plan)), alone_(of_, memory_, std::size_t{1} << (plan.pattern % 17)) {}

  void step(const operation& o) {
    switch (o.code / 8 % 4) {
      case 0: on_alone_.step(o); break;
      case 1: on_nodes_.step(o); break;
      case 2: on_objects_.step(o); break;
      default:
        if (o.code % 8 == 0) {
          chunk_memory_.allow(o.a < 128 ? o.a % 4 : SIZE_MAX);
        } else {
          trim_chunks();
        }
    }
  }

  void audit() const {
    on_alone_.audit();
    on_nodes_.audit();
    on_objects_.audit();
    const pool_stats s = chunks_.stats();
    require(s.in_use == for_nodes_.held() + for_objects_.held());
    require(s.held == chunk_memory_.held());
  }

  void finish() {
    on_alone_.finish();
    on_nodes_.finish();
    on_objects_.finish();
    trim_chunks();
    require(chunk_memory_.held() == 0);
  }

 private:
  void trim_chunks() {
    const std::size_t held = chunk_memory_.held();
    require(chunks_.trim() == held - chunk_memory_.held());
  }

  layout of_;
  source<> memory_{limit};
  pool<upstream<source<>>> alone_;
  equal_blocks<decltype(alone_), source<>> on_alone_{alone_, memory_, of_};

  source<> chunk_memory_{limit};
  chunk_pool chunks_{layout{shared_bytes, shared_bytes}, chunk_memory_, shared_bytes};
  chunk_source for_nodes_{limit, chunks_}, for_objects_{limit, chunks_};
  pool<upstream<chunk_source>> nodes_{layout{40, 8}, for_nodes_, shared_bytes};
  objects objects_{for_objects_, shared_bytes};
  equal_blocks<decltype(nodes_), chunk_source> on_nodes_{nodes_, for_nodes_, {40, 8}};
  equal_blocks<objects, chunk_source> on_objects_{objects_, for_objects_, layout::of<object>()};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t length) {
  if (length < operation::bytes) return 0;
  const input bytes(data, length);
  program tested{operation(bytes)};
  for_each_operation(bytes.subspan(operation::bytes), [&](const operation& o) {
    tested.step(o);
    tested.audit();
  });
  // Otherwise the pools are destroyed with their blocks.
  if (length % 2 == 0) tested.finish();
  return 0;
}
