#include "tick_clock.hpp"

#include <cstring>

#include <fcntl.h>
#include <unistd.h>

namespace heapwright::probe {
namespace {

constexpr std::uint64_t shortest_ns = 1'000'000, longest_ns = 1'000'000'000, usual_ns = 8'000'000;

constinit bool kernel_goes_by_ticks = false;

}  // namespace

void tick_clock::find_out() noexcept {
#if defined(__x86_64__)
  constexpr char wanted[] = "tsc\n";
#elif defined(__riscv)
  constexpr char wanted[] = "riscv_clocksource\n";
#else
  constexpr char wanted[] = "arch_sys_counter\n";
#endif
  char source[sizeof wanted]{};
  const int fd = ::open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  const ssize_t n = ::read(fd, source, sizeof source);
  ::close(fd);
  kernel_goes_by_ticks = n == sizeof wanted - 1 && std::memcmp(source, wanted, sizeof wanted - 1) == 0;
}

std::uint64_t tick_clock::read_both() noexcept {
  std::uint64_t ns = monotonic_ns();
  if (!kernel_goes_by_ticks) return ns;
  std::uint64_t ticks = ticks_now(), since_ns = ns - ns_;
  if (ns_ != 0 && since_ns < shortest_ns) return ns;
  // Another thread may have run between the two readings: of three times the one with the least
  // between them.
  std::uint64_t least = ~std::uint64_t{0};
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = ticks_now(), read = monotonic_ns(), between = ticks_now() - before;
    if (between >= least) continue;
    least = between;
    ns = read;
    ticks = before + between / 2;
  }
  since_ns = ns - ns_;
  const std::uint64_t since_ticks = ticks - ticks_;
  // Not from a long time, in which the machine may have slept, nor from nonsense.
  const bool is_known = ns_ != 0 && since_ns <= longest_ns && since_ticks > 0 && since_ticks <= since_ns * 16;
  ns_per_tick_ = is_known ? (since_ns << 32) / since_ticks : ns_per_tick_;
  most_ticks_ = ns_per_tick_ == 0 ? 0 : (usual_ns << 32) / ns_per_tick_;
  ticks_ = ticks;
  ns_ = ns;
  return ns;
}

}  // namespace heapwright::probe
