// What viewers are told, each as one text made from what the process shows at one moment.
//
// Times are seconds since 1970, sizes are bytes. A view that is bounded says what it left out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "watched_family.hpp"

namespace heapwright::tool {

/// The whole of a moment: process, totals, size classes, threads, marks. Format "heapwright live
/// 1".
[[nodiscard]] std::string state_view(watched_process& process);

/// What each thread did in each size class: rows of those that are not zero.
[[nodiscard]] std::string cells_view(watched_process& process);

[[nodiscard]] std::string history_view(watched_process& process, double since, std::size_t most);

/// `peak`: live when the process was at its peak.
enum class stack_value { live, peak, allocated, count, short_lived };

/// What is one node of a call tree. `line`: calls from different lines of a function stay apart.
/// `package`: see package_of.
enum class frame_detail { function, line, package };

struct stack_question {
  stack_value value = stack_value::live;
  std::shared_ptr<const baseline> since;       ///< set: by how much it has grown or shrunk
  std::shared_ptr<const baseline> until;       ///< set: by then; otherwise by now
  std::shared_ptr<const other_process> other;  ///< set: by how much it is more or less than there
  frame_detail by = frame_detail::function;
  bool from_site = false;          ///< the allocating places are the roots, their callers above them
  bool hides_interpreter = false;  ///< of stacks with calls in Python: places_book::without_interpreter
  bool folds_libraries = false;    ///< places_book::with_libraries_folded
  std::string threads;             ///< a pattern of their names; empty: all
  std::size_t most = 20'000;       ///< nodes, or rows

  [[nodiscard]] bool is_of_growth() const noexcept { return since != nullptr || other != nullptr; }
};

/// A call tree as columns: parent, place, total, own, grown. The smallest nodes are left out, and
/// counted.
[[nodiscard]] std::string tree_view(watched_process& process, const stack_question& question);

/// The sites with the most of the value, or that have grown most.
[[nodiscard]] std::string sites_view(watched_process& process, const stack_question& question);

/// How much each of the `most` sites that ever had most live bytes had, over time; and all others.
[[nodiscard]] std::string site_history_view(watched_process& process, const std::string& threads, std::size_t most);

/// Sites whose blocks stay: what is live by when it was allocated, and why a site looks like a leak
/// or does not.
[[nodiscard]] std::string leaks_view(watched_process& process, std::size_t most);

/// Lines of a file that call stacks name, around this one (1: the first); none where the file is
/// not there. `is_newer`: it has changed since the process began.
[[nodiscard]] std::string source_view(watched_process& process, const std::string& file, unsigned line);

/// Why RSS is what it is: the parts it consists of, the heap's size classes, the mappings. "at" is
/// null if that cannot be found out.
[[nodiscard]] std::string memory_view(watched_process& process);

/// What the malloc has written about mistakes of the program.
[[nodiscard]] std::string mistakes_view(watched_process& process);

/// The processes that this server shows.
[[nodiscard]] std::string processes_view(watched_family& family, bool with_ended_before);

/// Prometheus's text format. Each line says which process it is of. Those of a family that are not
/// watched have no PSS and no figures of their heaps.
[[nodiscard]] std::string metrics_view(watched_process& process);
[[nodiscard]] std::string metrics_view(watched_family& family);

[[nodiscard]] std::string classes_csv(watched_process& process);
[[nodiscard]] std::string threads_csv(watched_process& process);
[[nodiscard]] std::string history_csv(watched_process& process);
[[nodiscard]] std::string sites_csv(watched_process& process);

}  // namespace heapwright::tool
