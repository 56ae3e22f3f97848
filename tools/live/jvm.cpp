// HotSpot's attach protocol:
//
//   there is /tmp/.java_pidPID    a socket. A request is "1", "jcmd", the command and two more
//                                 texts, each with a null behind it. The answer begins with "0" if
//                                 all went well, and ends with the connection
//   there is none                 the JVM makes it when /tmp/.attach_pidPID is there, on SIGQUIT
//
// A process that does not catch SIGQUIT would end by it, as a JVM that has only just begun. So it
// is sent to none that does not.
#include "jvm.hpp"

#include <algorithm>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "descriptor.hpp"
#include "process_image.hpp"

namespace heapwright::tool {
namespace {

namespace fs = std::filesystem;

constexpr int patience_ms = 2000, step_ms = 50;

bool catches_sigquit(pid_t process) {
  const std::string status = read_file(fmt::format("/proc/{}/status", process)).value_or("");
  constexpr std::string_view field = "SigCgt:";
  const auto at = status.find(field);
  if (at == std::string::npos) return false;
  return (std::strtoull(status.c_str() + at + field.size(), nullptr, 16) >> (SIGQUIT - 1) & 1) != 0;
}

bool is_socket(const std::string& path) {
  std::error_code trouble;
  return fs::is_socket(path, trouble);
}

bool has_socket(pid_t process, const std::string& path, const std::string& wish) {
  if (is_socket(path)) return true;
  if (!catches_sigquit(process)) return false;
  if (!descriptor(open(wish.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600))) return false;
  kill(process, SIGQUIT);
  for (int waited = 0; waited < patience_ms && !is_socket(path); waited += step_ms) poll(nullptr, 0, step_ms);
  unlink(wish.c_str());
  return is_socket(path);
}

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
  const std::string folder = path_inside(process, "/tmp");
  const std::string path = fmt::format("{}/.java_pid{}", folder, own_id);
  if (!has_socket(process, path, fmt::format("{}/.attach_pid{}", folder, own_id))) return false;
  const descriptor connection = connected_to(path);
  constexpr std::string_view request("1\0jcmd\0Compiler.perfmap\0\0\0", 26);
  if (!connection || send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL) != request.size())
    return false;
  // An unknown command is told in the answer's text.
  const std::string answer = answer_of(connection);
  return answer.starts_with("0\n") && answer.find("Exception") == std::string::npos;
}

}  // namespace heapwright::tool
