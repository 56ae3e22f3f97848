// A server that does wrong with its memory when a line on stdin says so, and answers with a line:
//
//   write beyond   to a byte behind a block, which it then frees
//   free twice     one block
//   read freed     reads a block after it has freed it, again and again with other blocks, until it
//                  is ended
#include <array>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <string>

namespace {

constexpr std::size_t session_bytes = 100;

[[gnu::noinline]] char* open_session() {
  auto* const session = static_cast<char*>(std::malloc(session_bytes));
  if (session == nullptr) std::abort();
  std::memset(session, 's', session_bytes);
  return session;
}

[[gnu::noinline]] void close_session(char* session) { std::free(session); }

[[gnu::noinline]] void write_beyond() {
  char* const session = open_session();
  static_cast<volatile char*>(session)[session_bytes] = 'x';
  close_session(session);
}

[[gnu::noinline]] void free_twice() {
  char* volatile session = open_session();
  close_session(session);
  close_session(session);
}

[[gnu::noinline]] char read_freed() {
  // Many at once, so that free lists run empty.
  std::array<char* volatile, 200> sessions{};
  char last = 0;
  for (auto& session : sessions) session = open_session();
  for (auto& session : sessions) {
    close_session(session);
    last = static_cast<const volatile char*>(session)[session_bytes / 2];
  }
  return last;
}

}  // namespace

int main() {
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line); std::cout << "done" << std::endl) {
    if (line == "write beyond") write_beyond();
    if (line == "free twice") free_twice();
    while (line == "read freed") (void)read_freed();
  }
}
