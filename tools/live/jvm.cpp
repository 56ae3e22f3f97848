// HotSpot's attach protocol: the JVM listens at the socket /tmp/.java_pidPID. A request is "1",
// "jcmd", the command and two more texts, each with a null behind it. The answer ends with the
// connection.
//
// A JVM that does not listen yet would begin to on SIGQUIT, by which one that refuses attachment
// writes to its stdout, and a process that is not so far as to catch it ends. So none is sent:
// launched_program has a JVM listen from its beginning.
#include "jvm.hpp"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "descriptor.hpp"
#include "process_image.hpp"

namespace heapwright::tool {
namespace {

constexpr int patience_ms = 2000;

descriptor connected_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return {};
  std::ranges::copy(path, address.sun_path);
  descriptor connection(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (connection && connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return connection;
  return {};
}

/// What it says is of no use: what it has not written is not there.
void wait_for_end_of(const descriptor& connection) {
  std::array<char, 256> answer{};
  pollfd readable{connection.get(), POLLIN, 0};
  while (poll(&readable, 1, patience_ms) > 0 && read(connection.get(), answer.data(), answer.size()) > 0) continue;
}

}  // namespace

bool is_jvm(pid_t process) {
  return std::ranges::any_of(mapped_files(process), [](const mapping& m) { return m.path.ends_with("/libjvm.so"); });
}

void write_perf_map_of_jvm(pid_t process, std::uint32_t own_id) {
  const descriptor connection = connected_to(path_inside(process, fmt::format("/tmp/.java_pid{}", own_id)));
  constexpr std::string_view request("1\0jcmd\0Compiler.perfmap\0\0\0", 26);
  if (connection && send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL) > 0)
    wait_for_end_of(connection);
}

}  // namespace heapwright::tool
