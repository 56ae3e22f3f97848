// Walks /proc/PID/task/TID/children, which costs in proportion to the tree, not to the processes of
// the machine.
#include "process_tree.hpp"

#include <charconv>
#include <string>
#include <string_view>

#include <dirent.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "descriptor.hpp"

namespace heapwright::tool {
namespace {

std::uint64_t resident_pages(std::string_view statm) {
  std::uint64_t pages = 0;
  const auto second = statm.find(' ') + 1;
  std::from_chars(statm.data() + second, statm.data() + statm.size(), pages);
  return pages;
}

void add_children(pid_t parent, const std::string& parent_statm, pid_t except, std::vector<tree_member>& members) {
  static const auto page_size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::string tasks = fmt::format("/proc/{}/task", parent);
  DIR* const folder = opendir(tasks.c_str());
  if (folder == nullptr) return;
  while (const dirent* const task = readdir(folder)) {
    if (task->d_name[0] == '.') continue;
    const std::string children = read_file(fmt::format("{}/{}/children", tasks, task->d_name)).value_or("");
    const char* at = children.data();
    const char* const end = at + children.size();
    for (pid_t pid = 0; std::from_chars(at, end, pid).ec == std::errc();) {
      at = std::from_chars(at, end, pid).ptr;
      while (at != end && *at == ' ') ++at;
      if (pid == except) continue;
      const std::string statm = read_file(fmt::format("/proc/{}/statm", pid)).value_or("");
      // Seven equal figures are one memory seen twice: a vforked child that has not called exec
      // yet.
      members.push_back({pid, statm == parent_statm ? 0 : resident_pages(statm) * page_size});
      add_children(pid, statm, except, members);
    }
  }
  closedir(folder);
}

}  // namespace

void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<tree_member> descendants(pid_t except) {
  std::vector<tree_member> members;
  add_children(getpid(), {}, except, members);
  return members;
}

}  // namespace heapwright::tool
