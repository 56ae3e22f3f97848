// Rows. A block that grows is a row of blocks, each of which takes over from the one before it. In
// the advised plan the first one is as long as the last will be, and lives to the end of the last;
// what the program touches of it grows step by step. Only rows whose blocks one thread alone
// allocates and frees are changed: in other rows the replay could take one block for another.
//
// Slots. A row needs one that nobody else uses while it lives. Those of the plan are taken, so rows
// have slots of their own, used again by the same thread alone.
#include "advised_plan.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include "block_walk.hpp"
#include "failure.hpp"

namespace heapwright::tool {
namespace {

using replay::operation;
using replay::operation_kind;

struct row_step {
  std::uint32_t row;
  std::uint64_t first, second;   ///< operations
  std::uint64_t before, behind;  ///< bytes
};

struct block_row {
  std::uint32_t thread = 0;
  bool is_sound = true;        ///< of one thread, begun by an allocation, and only grows
  bool is_resized = false;     ///< its block was taken by a realloc: it has to grow by that
  std::uint64_t begun_at = 0;  ///< operation
  std::uint64_t ended_at = UINT64_MAX;
  std::uint64_t size = 0;  ///< bytes of the last block
  std::uint32_t slot = 0;
};

/// Finds the rows of some sites.
class row_finder {
 public:
  row_finder(const mapped_plan& plan, std::vector<bool> wanted) : plan_(plan), wanted_(std::move(wanted)) {}

  void begins(const walked_block&, const living_blocks&) {}

  void ends(const walked_block& b, const living_blocks&, block_end how, std::uint32_t thread, std::uint64_t at) {
    if (b.row_plus_one == 0) return;
    block_row& row = rows[b.row_plus_one - 1];
    row.is_sound = row.is_sound && thread == row.thread && !row.is_resized;
    if (how == block_end::resized) row.is_resized = true;
    if (how == block_end::freed) row.ended_at = at;
  }

  void takes_over(const walked_block& former, walked_block& next, std::uint64_t first, std::uint64_t second) {
    if (former.row_plus_one == 0) {
      if (!wanted_[next.site]) return;
      const bool is_begun_here = plan_.operations()[former.begun_at].kind == operation_kind::allocate;
      rows.push_back({.thread = former.thread, .is_sound = is_begun_here, .begun_at = former.begun_at});
      next.row_plus_one = static_cast<std::uint32_t>(rows.size());
    } else {
      next.row_plus_one = former.row_plus_one;
    }
    block_row& row = rows[next.row_plus_one - 1];
    row.is_resized = false;
    row.is_sound = row.is_sound && next.thread == row.thread;
    row.size = next.size;
    steps.push_back({next.row_plus_one - 1, first, second, former.size, next.size});
  }

  std::vector<block_row> rows;
  std::vector<row_step> steps;

 private:
  const mapped_plan& plan_;
  std::vector<bool> wanted_;  ///< by site
};

/// By the number of an operation, which goes up with the program of each thread. Returns how many
/// slots there are then.
std::uint64_t give_slots(std::vector<block_row>& rows, std::uint64_t slots) {
  std::vector<block_row*> order;
  for (block_row& row : rows)
    if (row.is_sound) order.push_back(&row);
  std::ranges::sort(order, {}, [](const block_row* r) { return std::pair(r->thread, r->begun_at); });
  using ended = std::pair<std::uint64_t, std::uint32_t>;  // when, slot
  std::priority_queue<ended, std::vector<ended>, std::greater<>> used;
  const block_row* last = nullptr;
  for (block_row* const row : order) {
    if (last != nullptr && last->thread != row->thread) used = {};
    last = row;
    if (!used.empty() && used.top().first < row->begun_at) {
      row->slot = used.top().second;
      used.pop();
    } else {
      row->slot = static_cast<std::uint32_t>(slots++);
    }
    used.emplace(row->ended_at, row->slot);
  }
  return slots;
}

/// A plan in a file that can be changed.
class changeable_plan {
 public:
  changeable_plan(std::span<const std::byte> plan, std::size_t more, int to) : bytes_(plan.size() + more) {
    if (posix_fallocate(to, 0, static_cast<off_t>(bytes_)) == 0)
      at_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, to, 0);
    if (at_ == MAP_FAILED)
      throw failure(exit_code::bad_input,
                    "a plan of the advice cannot be written: no room; it lies in $TMPDIR, or in /tmp");
    std::memcpy(at_, plan.data(), plan.size());
  }
  changeable_plan(const changeable_plan&) = delete;
  changeable_plan& operator=(const changeable_plan&) = delete;
  ~changeable_plan() { munmap(at_, bytes_); }

  [[nodiscard]] operation& operator[](std::uint64_t number) noexcept { return static_cast<operation*>(at_)[number]; }
  [[nodiscard]] std::byte* end() noexcept { return static_cast<std::byte*>(at_) + bytes_; }

 private:
  void* at_ = MAP_FAILED;
  std::size_t bytes_;
};

std::uint64_t touched_of(const operation& o) {
  return o.touched == operation::whole_size ? o.size : o.size * o.touched / operation::whole_size;
}

void set_size(operation& o, std::uint64_t size, std::uint64_t touched) {
  o.size = size & operation::largest_size;
  o.touched = touched >= size ? operation::whole_size
                              : static_cast<std::uint16_t>((touched * operation::whole_size + size - 1) / size);
}

void change_rows(changeable_plan& plan, const row_finder& found) {
  const auto put = [&](std::uint64_t number, const block_row& row, operation_kind kind, std::uint64_t size) {
    operation& o = plan[number];
    const std::uint64_t touched = std::min(touched_of(o), size);
    o.kind = kind;
    o.part = 0;
    o.slot = row.slot;
    set_size(o, size, kind == operation_kind::allocate ? touched : size);
  };
  for (const row_step& step : found.steps) {
    const block_row& row = found.rows[step.row];
    if (!row.is_sound || row.is_resized) continue;
    put(step.first, row, operation_kind::nothing, step.before);
    put(step.second, row, operation_kind::grow, step.behind);
  }
  for (const block_row& row : found.rows) {
    if (!row.is_sound || row.is_resized) continue;
    put(row.begun_at, row, operation_kind::allocate, row.size);
    if (row.ended_at != UINT64_MAX) put(row.ended_at, row, operation_kind::deallocate, row.size);
  }
}

}  // namespace

void write_advised_plan(const mapped_plan& as_is, std::span<const advice> followed, const scratch_file& to) {
  std::vector<replay::kit_part> parts;
  std::vector<std::uint8_t> part_of_site(operation::last_site + std::size_t{1});
  std::vector<bool> grows(operation::last_site + std::size_t{1});
  for (const advice& one : followed) {
    if (one.kind == advice_kind::reserve) grows[one.site] = true;
    const auto part = one.replayed_part();
    if (!part) continue;
    parts.push_back(*part);
    part_of_site[one.site] = static_cast<std::uint8_t>(parts.size());
  }
  replay::plan_footer footer = as_is.footer();
  changeable_plan plan(as_is.bytes(), parts.size() * sizeof parts[0], to.fd());
  for (std::uint64_t i = 0; i < footer.operations; ++i)
    plan[i].part = part_of_site[plan[i].site] & operation::last_part;
  row_finder found(as_is, std::move(grows));
  if (parts.size() < followed.size()) block_walk(as_is).run(found);
  footer.slots = give_slots(found.rows, footer.slots);
  change_rows(plan, found);
  footer.parts_at = as_is.bytes().size() - sizeof footer;
  footer.parts = parts.size();
  std::memcpy(plan.end() - sizeof footer, &footer, sizeof footer);
  const auto bytes_of_parts = std::as_bytes(std::span(parts));
  std::ranges::copy(bytes_of_parts, plan.end() - sizeof footer - bytes_of_parts.size());
}

}  // namespace heapwright::tool
