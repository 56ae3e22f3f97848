// HotSpot's attach protocol: the JVM listens at the socket /tmp/.java_pidPID. A request is "1",
// "jcmd", the command and two more texts, each with a null behind it. The answer begins with "0" if
// all went well, and ends with the connection.
//
// A JVM that does not listen yet would begin to on SIGQUIT, by which one that refuses attachment
// writes to its stdout, and a process that is not so far as to catch it ends. So none is sent:
// launched_program has a JVM listen from its beginning.
#include "jvm.hpp"

#include <algorithm>
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

/// What comes until the other side closes; what has come where that takes too long.
std::string answer_of(const descriptor& connection) {
  std::string answer(1 << 12, '\0');
  std::size_t length = 0;
  pollfd readable{connection.get(), POLLIN, 0};
  while (length < answer.size() && poll(&readable, 1, patience_ms) > 0) {
    const ssize_t n = read(connection.get(), answer.data() + length, answer.size() - length);
    if (n <= 0) break;
    length += static_cast<std::size_t>(n);
  }
  answer.resize(length);
  return answer;
}

}  // namespace

bool is_jvm(pid_t process) {
  return std::ranges::any_of(mapped_files(process), [](const mapping& m) { return m.path.ends_with("/libjvm.so"); });
}

bool write_perf_map_of_jvm(pid_t process, std::uint32_t own_id) {
  const descriptor connection = connected_to(path_inside(process, fmt::format("/tmp/.java_pid{}", own_id)));
  constexpr std::string_view request("1\0jcmd\0Compiler.perfmap\0\0\0", 26);
  if (!connection || send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return false;
  // An unknown command is told in the answer's text.
  const std::string answer = answer_of(connection);
  return answer.starts_with("0\n") && answer.find("Exception") == std::string::npos;
}

}  // namespace heapwright::tool
