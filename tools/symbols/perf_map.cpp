#include "perf_map.hpp"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "descriptor.hpp"

namespace heapwright::tool {
namespace {

/// Anyone may write to /tmp: more than a program ever lists is not read.
constexpr std::uint64_t longest_file = 256 << 20;

std::string read_range(int fd, std::uint64_t from, std::uint64_t to) {
  std::string text(to - from, '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t n = pread(fd, text.data() + done, text.size() - done, static_cast<off_t>(from + done));
    if (n <= 0) break;
    done += static_cast<std::size_t>(n);
  }
  text.resize(done);
  return text;
}

/// Takes a hexadecimal number and the blanks behind it from the front.
bool take_number(std::string_view& text, std::uint64_t& number) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (error != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  const std::size_t blanks = text.find_first_not_of(" \t");
  if (blanks == 0 || blanks == std::string_view::npos) return false;
  text.remove_prefix(blanks);
  return true;
}

}  // namespace

bool perf_map::refresh() {
  struct stat about {};
  // Neither another's link to a file of ours nor a FIFO that blocks.
  if (lstat(path_.c_str(), &about) != 0 || !S_ISREG(about.st_mode)) return false;
  const auto size = static_cast<std::uint64_t>(about.st_size);
  const std::int64_t written_ns = about.st_mtim.tv_sec * std::int64_t{1'000'000'000} + about.st_mtim.tv_nsec;
  if (size == seen_bytes_ && about.st_ino == file_id_ && written_ns == written_ns_) return false;
  const descriptor file(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (!file || size > longest_file) return false;
  const std::uint64_t before = read_bytes_ - last_read_.size();
  if (about.st_ino != file_id_ || size < seen_bytes_ || read_range(file.get(), before, read_bytes_) != last_read_) {
    pieces_.clear();
    read_bytes_ = 0;
  }
  written_ns_ = written_ns;
  file_id_ = about.st_ino;
  seen_bytes_ = size;

  const std::string text = read_range(file.get(), read_bytes_, size);
  bool is_new = false;
  std::size_t at = 0;
  for (std::size_t end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1)
    is_new = add_line(text.substr(at, end - at)) || is_new;
  read_bytes_ += at;
  constexpr std::uint64_t remembered = 256;
  last_read_ = read_range(file.get(), read_bytes_ - std::min(read_bytes_, remembered), read_bytes_);
  return is_new;
}

bool perf_map::add_line(const std::string& line) {
  std::string_view rest = line;
  std::uint64_t begin = 0, size = 0;
  if (!take_number(rest, begin) || !take_number(rest, size) || size == 0 || begin + size < begin) return false;
  const std::uint64_t end = begin + size;
  auto first = pieces_.lower_bound(begin);
  if (first != pieces_.begin() && std::prev(first)->second.end > begin) --first;
  pieces_.erase(first, pieces_.lower_bound(end));
  pieces_[begin] = {end, std::string(rest)};
  return true;
}

const std::string* perf_map::find(std::uint64_t pc) const {
  const auto after = pieces_.upper_bound(pc);
  if (after == pieces_.begin()) return nullptr;
  const piece& candidate = std::prev(after)->second;
  return pc < candidate.end ? &candidate.name : nullptr;
}

}  // namespace heapwright::tool
