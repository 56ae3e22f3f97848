#include "attachment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include "anonymous_memory.hpp"
#include "failure.hpp"
#include "not_recorded.hpp"
#include "ring_source.hpp"
#include "segment_choice.hpp"

namespace heapwright::tool {
namespace {

failure cannot_record(pid_t process, const std::string& why) {
  return {exit_code::bad_input, fmt::format("process {} cannot be recorded: {}", process, why)};
}

std::filesystem::path segment_to_record(pid_t process) {
  std::filesystem::path found = segment_of(process);
  if (found.empty()) {
    check_can_have_probe(process);
    throw cannot_record(process,
                        "the probe is not in it; LD_PRELOAD=libheapwright-probe.so HEAPWRIGHT_PROBE=off "
                        "starts a program with one that waits");
  }
  return found;
}

}  // namespace

attachment::attachment(pid_t process)
    : segment_(segment_to_record(process), true), figures_(segment::segment_reader(segment_.path()).process()) {
  if (has_ended()) throw cannot_record(process, "it has ended");
  lock_ = descriptor(::open(segment_.path().c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!lock_) throw cannot_record(process, "its segment may not be opened");
  segment::segment_header& h = segment_.control();
  if (flock(lock_.get(), LOCK_EX | LOCK_NB) != 0 ||
      h.recording.load(std::memory_order_relaxed) == segment::recorded_from_start)
    throw cannot_record(process, "somebody records it already");
  if (is_counting())
    throw cannot_record(process, "its probe counts; end `heapwright live`, or switch counting off on its page");
  if (const auto left = ring_source::open(rings())) left->forget_own_mappings();
  anonymous_before_ = trace::anonymous_bytes(fmt::format("/proc/{}/smaps", process).c_str());
  h.why_not_recorded.store(0, std::memory_order_relaxed);
  recording_ = 2 * static_cast<std::uint32_t>(getpid());
  h.recording.store(recording_, std::memory_order_relaxed);
}

attachment::~attachment() { detach(); }

segment::segment_header* attachment::control() noexcept {
  try {
    return &segment_.control();
  } catch (const segment::bad_segment&) {
    return nullptr;
  }
}

void attachment::detach() noexcept {
  if (recording_ == 0) return;
  if (segment::segment_header* const h = control()) h->recording.store(0, std::memory_order_relaxed);
  recording_ = 0;
}

std::filesystem::path attachment::rings() const {
  return std::filesystem::path(segment_.path()).replace_extension(".rings");
}

void attachment::check_records() {
  const segment::segment_header* const h = control();
  const int error = h != nullptr ? h->why_not_recorded.load(std::memory_order_relaxed) : 0;
  if (error != 0)
    throw cannot_record(
        static_cast<pid_t>(figures_.process_id),
        fmt::format("{}; `heapwright record -- COMMAND` starts a program that makes the file with its first call",
                    why_not_recorded(error, segment_.path().parent_path())));
}

bool attachment::is_counting() noexcept {
  const segment::segment_header* const h = control();
  return h != nullptr && (h->counting.load(std::memory_order_relaxed) & segment::counting_is_on) != 0;
}

bool attachment::is_another_program() noexcept {
  const segment::segment_header* const h = control();
  return h != nullptr &&
         h->state.load(std::memory_order_relaxed) == static_cast<std::uint32_t>(segment::process_state::replaced);
}

bool attachment::has_ended() const { return !segment::is_there(figures_); }

}  // namespace heapwright::tool
