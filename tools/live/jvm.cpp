// HotSpot's attach protocol: the JVM listens at the socket /tmp/.java_pidPID. A request is "1",
// "jcmd", the command and two more texts, each with a null behind it. The answer begins with a
// number, 0 where the command was carried out, and ends with the connection.
//
// A JVM that does not listen yet would begin to on SIGQUIT, by which one that refuses attachment
// writes to its stdout, and a process that is not so far as to catch it ends. So none is sent:
// launched_program has a JVM listen from its beginning.
#include "jvm.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <ranges>
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

/// Nothing: it does not listen, or does not answer in time.
std::optional<std::string> answer_of_jvm(pid_t process, std::uint32_t own_id, std::string_view command) {
  constexpr std::size_t longest = 1 << 20;
  using namespace std::literals;
  const descriptor connection = connected_to(path_inside(process, fmt::format("/tmp/.java_pid{}", own_id)));
  const std::string request = fmt::format("1\0jcmd\0{}\0\0\0"sv, command);
  if (!connection || send(connection.get(), request.data(), request.size(), MSG_NOSIGNAL) <= 0) return std::nullopt;
  std::string answer;
  std::array<char, 4096> part{};
  pollfd readable{connection.get(), POLLIN, 0};
  while (answer.size() < longest && poll(&readable, 1, patience_ms) > 0) {
    const ssize_t n = read(connection.get(), part.data(), part.size());
    if (n <= 0) return n == 0 ? std::optional(answer) : std::nullopt;
    answer.append(part.data(), static_cast<std::size_t>(n));
  }
  return std::nullopt;
}

/// The number behind `name`; 0: there is none.
std::uint64_t number_behind(std::string_view name, std::string_view text) {
  std::uint64_t number = 0;
  if (const std::size_t at = text.find(name); at != std::string_view::npos)
    std::from_chars(text.data() + at + name.size(), text.data() + text.size(), number);
  return number;
}

}  // namespace

bool is_jvm(pid_t process) {
  return std::ranges::any_of(mapped_files(process), [](const mapping& m) { return m.path.ends_with("/libjvm.so"); });
}

void write_perf_map_of_jvm(pid_t process, std::uint32_t own_id) {
  (void)answer_of_jvm(process, own_id, "Compiler.perfmap");
}

std::optional<std::vector<jvm_part>> memory_of_jvm(pid_t process, std::uint32_t own_id) {
  const auto answer = answer_of_jvm(process, own_id, "VM.native_memory summary scale=B");
  if (!answer) return std::nullopt;
  return jvm_parts_in(*answer);
}

// A part begins with a line "-  NAME (reserved=N, committed=N)". Lines that are further in tell of
// it; one of them may have "(malloc=N #N)".
std::vector<jvm_part> jvm_parts_in(std::string_view answer) {
  std::vector<jvm_part> parts;
  for (const auto piece : std::views::split(answer, '\n')) {
    const std::string_view line(piece.begin(), piece.end());
    const std::size_t figures = line.find("(reserved=");
    if (line.starts_with('-') && figures != std::string_view::npos) {
      std::string_view name = line.substr(1, figures - 1);
      name.remove_prefix(std::min(name.find_first_not_of(' '), name.size()));
      name.remove_suffix(name.size() - (name.find_last_not_of(' ') + 1));
      parts.push_back({.name = std::string(name),
                       .reserved = number_behind("(reserved=", line),
                       .committed = number_behind("committed=", line)});
    } else if (!parts.empty()) {
      parts.back().by_malloc += number_behind("(malloc=", line);
    }
  }
  return parts;
}

}  // namespace heapwright::tool
