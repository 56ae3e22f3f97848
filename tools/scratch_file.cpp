// Outputs may be large: they are compared as mapped files, and only a line's worth of them is ever
// copied.
#include "scratch_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "failure.hpp"
#include "printable.hpp"

namespace heapwright::tool {
namespace {

class mapped_text {
 public:
  explicit mapped_text(const scratch_file& file) : size_(file.size()) {
    if (size_ == 0) return;
    void* const address = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd(), 0);
    if (address == MAP_FAILED) throw failure(exit_code::bad_input, "cannot map the command's output to compare it");
    data_ = static_cast<const char*>(address);
  }
  mapped_text(const mapped_text&) = delete;
  mapped_text& operator=(const mapped_text&) = delete;
  ~mapped_text() {
    if (data_ != nullptr) munmap(const_cast<char*>(data_), size_);
  }

  [[nodiscard]] std::string_view view() const noexcept { return {data_, size_}; }

 private:
  const char* data_ = nullptr;
  std::size_t size_;
};

/// The line that begins at `start`, as a message shows it.
std::string line_at(std::string_view text, std::size_t start) {
  if (start >= text.size()) return "(the output ends here)";
  return "\"" + printable(text.substr(start, text.find('\n', start) - start), 100) + "\"";
}

}  // namespace

std::string scratch_place() {
  const char* const variable = std::getenv("TMPDIR");
  return variable != nullptr && *variable != '\0' ? variable : "/tmp";
}

scratch_file::scratch_file() {
  const std::string folder = scratch_place();
  file_ = descriptor(open(folder.c_str(), O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600));
  if (file_) return;
  // Not every file system can make a file without a name; there, the name lives for a moment.
  std::string name = folder + "/heapwright-XXXXXX";
  file_ = descriptor(mkostemp(name.data(), O_APPEND | O_CLOEXEC));
  if (!file_)
    throw failure(exit_code::bad_input,
                  fmt::format("cannot make a temporary file in {}: {}", folder, std::strerror(errno)));
  unlink(name.c_str());
}

std::uint64_t scratch_file::size() const {
  struct stat about {};
  fstat(fd(), &about);
  return static_cast<std::uint64_t>(about.st_size);
}

std::string scratch_file::content() const { return std::string(mapped_text(*this).view()); }

std::string scratch_file::tail(unsigned lines) const {
  constexpr std::size_t window = 8192;
  const mapped_text text(*this);
  const std::string_view all = text.view();
  std::string end(all.substr(all.size() - std::min(window, all.size())));
  std::ranges::replace(end, '\r', '\n');  // progress is drawn over itself: what stands last in its line counts
  std::istringstream input(std::move(end));
  std::deque<std::string> last;
  for (std::string line; std::getline(input, line);) {
    line.erase(line.find_last_not_of(" \t") + 1);
    if (line.empty()) continue;
    last.push_back(printable(line, 200));
    if (last.size() > lines) last.pop_front();
  }
  return fmt::format("{}", fmt::join(last, " | "));
}

descriptor scratch_file::reopen() const {
  return descriptor(open(fmt::format("/proc/self/fd/{}", fd()).c_str(), O_RDONLY | O_CLOEXEC));
}

bool scratch_file::has_room() const {
  struct statvfs about {};
  return fstatvfs(fd(), &about) != 0 || about.f_bavail > 0;
}

void scratch_file::fill_from(int source) const {
  char buffer[65536];
  for (;;) {
    const ssize_t n = read(source, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw failure(exit_code::bad_input, fmt::format("cannot read standard input: {}", std::strerror(errno)));
    if (n == 0) return;
    if (write(fd(), buffer, static_cast<std::size_t>(n)) != n)
      throw failure(exit_code::bad_input, fmt::format("cannot keep standard input: {}", std::strerror(errno)));
  }
}

std::optional<difference> first_difference(const scratch_file& expected, const scratch_file& found) {
  const mapped_text a(expected);
  const mapped_text b(found);
  const auto [end, other] = std::mismatch(a.view().begin(), a.view().end(), b.view().begin(), b.view().end());
  if (end == a.view().end() && other == b.view().end()) return std::nullopt;
  const std::string_view same = a.view().substr(0, static_cast<std::size_t>(end - a.view().begin()));
  const std::size_t start = same.empty() ? 0 : same.rfind('\n') + 1;  // npos + 1 is 0: the first line
  const auto line = static_cast<std::uint64_t>(std::count(same.begin(), same.end(), '\n')) + 1;
  return difference{line, line_at(a.view(), start), line_at(b.view(), start)};
}

}  // namespace heapwright::tool
