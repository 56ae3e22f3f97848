#include "output_file.hpp"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "terminal.hpp"

namespace heapwright::tool {
namespace {

namespace fs = std::filesystem;

bool is_in_proc(const fs::path& path) {
  std::error_code error;
  return fs::canonical(path.parent_path(), error).string().starts_with("/proc");
}

/// A container has single files mounted into it; they cannot be replaced.
bool is_mounted_on(const std::string& path) {
  struct statx about {};
  return statx(AT_FDCWD, path.c_str(), 0, STATX_TYPE, &about) == 0 &&
         (about.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

bool is_empty_file(const struct stat& about) { return S_ISREG(about.st_mode) && about.st_size == 0; }

/// Whether the file that is there would be another one if it were replaced, or has nothing to lose.
bool is_to_be_kept(const std::string& path, const struct stat& about) {
  return !S_ISREG(about.st_mode) || is_empty_file(about) || about.st_nlink > 1 || is_in_proc(followed(path)) ||
         is_mounted_on(path);
}

/// The mode comes last: a new owner takes bits away.
bool gets_owner_and_mode(int fd, const struct stat& wanted) {
  struct stat has {};
  if (fstat(fd, &has) != 0) return false;
  const bool is_same_owner = has.st_uid == wanted.st_uid && has.st_gid == wanted.st_gid;
  return (is_same_owner || fchown(fd, wanted.st_uid, wanted.st_gid) == 0) && fchmod(fd, wanted.st_mode & 07777) == 0;
}

failure cannot_open(const std::string& path, int why = errno) {
  return {exit_code::bad_input, fmt::format("cannot write to {}: {}", path, std::strerror(why))};
}

failure cannot_write(const std::string& path) {
  return {exit_code::bad_input, fmt::format("could not write all of {}: {}", path, std::strerror(errno))};
}

void write_output(const std::string& path, const std::string& text) {
  if (path == "-") {
    answer_text(text);
    finish_answers();
    return;
  }
  output_file file(path);
  file.write(text);
  file.finish();
}

}  // namespace

fs::path followed(const fs::path& path) {
  fs::path at = fs::absolute(path);
  constexpr int most_links = 40;  // as the kernel follows
  for (int links = 0; links < most_links && !is_in_proc(at); ++links) {
    std::error_code is_no_link;
    const fs::path next = fs::read_symlink(at, is_no_link);
    if (is_no_link) break;
    at = at.parent_path() / next;
  }
  return at;
}

bool lead_to_one_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const auto place_of = [&](const fs::path& path) {
    const fs::path at = followed(path);
    return fs::weakly_canonical(at.parent_path(), error) / at.filename();
  };
  return place_of(a) == place_of(b);
}

unfinished_file::unfinished_file(fs::path target, mode_t mode) : target_(std::move(target)) {
  const std::string start = target_.filename().string().substr(0, 200);  // a name has 255 bytes at most
  for (int i = 0; i < 1000 && !file_; ++i) {
    path_ = target_.parent_path() / fmt::format("{}.{}-{}.unfinished", start, getpid(), i);
    file_ = descriptor(open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!file_ && errno != EEXIST) break;
  }
  if (!file_) path_.clear();
}

unfinished_file::~unfinished_file() {
  if (!path_.empty()) unlink(path_.c_str());
}

bool unfinished_file::take_name() noexcept {
  if (rename(path_.c_str(), target_.c_str()) != 0) return false;
  path_.clear();
  return true;
}

output_file::output_file(std::string path, mode_t mode) : path_(std::move(path)) {
  struct stat before {};
  const bool exists = stat(path_.c_str(), &before) == 0;
  if (!exists && errno != ENOENT) throw cannot_open(path_);
  if (exists && access(path_.c_str(), W_OK) != 0) throw cannot_open(path_);
  if (!exists || S_ISREG(before.st_mode)) held_back_.emplace({SIGINT, SIGTERM, SIGHUP, SIGXFSZ});
  if (!exists || !is_to_be_kept(path_, before)) {
    beside_.emplace(followed(path_), mode);
    const bool may_not = !beside_->is_open() && (errno == EACCES || errno == EPERM || errno == EROFS);
    if (!beside_->is_open() && !(exists && may_not)) throw cannot_open(path_);
    if (beside_->is_open() && (!exists || gets_owner_and_mode(fd(), before))) return;
    beside_.reset();
  }
  was_empty_ = exists && is_empty_file(before);
  in_place_ = descriptor(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode));
  if (!in_place_) throw cannot_open(path_);
}

output_file::~output_file() {
  if (in_place_ && was_empty_) (void)!ftruncate(in_place_.get(), 0);
}

void output_file::write(const std::string& text) {
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t n = ::write(fd(), text.data() + done, text.size() - done);
    if (n < 0 && errno != EINTR) throw trouble();
    if (n > 0) done += static_cast<std::size_t>(n);
  }
}

void output_file::finish() {
  // Some file systems find out here that there is no room.
  struct stat about {};
  if (fstat(fd(), &about) == 0 && S_ISREG(about.st_mode) && fsync(fd()) != 0) throw trouble();
  if (beside_ && !beside_->take_name()) throw trouble();
  beside_.reset();
  in_place_.close();
  held_back_.reset();
}

failure output_file::trouble() const { return cannot_write(path_); }

void check_writable(const std::string& path) {
  if (path.empty() || path == "-") return;
  std::error_code error;
  const std::string asked = fs::exists(path, error) ? path : followed(path).parent_path().string();
  const bool is_new_in_a_file = asked != path && fs::exists(asked, error) && !fs::is_directory(asked, error);
  const int why = fs::is_directory(path, error)      ? EISDIR
                  : is_new_in_a_file                 ? ENOTDIR
                  : access(asked.c_str(), W_OK) != 0 ? errno
                                                     : 0;
  if (why != 0) throw cannot_open(path, why);
}

void check_is_a_file(const char* option, const std::string& path) {
  if (path == "-")
    throw failure(exit_code::bad_input,
                  fmt::format("{} -: this goes into a file, not to standard output; ./- is one of that name", option));
}

void check_replaces_none(const char* option, const std::string& output, const std::vector<std::string>& needed) {
  std::error_code error;
  if (output == "-" || !fs::is_regular_file(output, error)) return;
  for (const std::string& path : needed)
    if (!path.empty() && lead_to_one_file(output, path))
      throw failure(
          exit_code::bad_input,
          fmt::format("{} {}: it would replace {}, which is needed here; give it another name", option, output, path));
}

void check_json_and_html(const std::string& json, const std::string& html, const std::vector<std::string>& needed) {
  for (const auto& [option, file] : {std::pair{"--json", json}, std::pair{"--html", html}}) {
    check_replaces_none(option, file, needed);
    check_writable(file);
  }
  if (!json.empty() && !html.empty() && (json == html || (json != "-" && html != "-" && lead_to_one_file(json, html))))
    throw failure(exit_code::bad_input, fmt::format("--json and --html both go to {}", json));
}

void write_outputs(const std::vector<std::pair<std::string, std::string>>& texts_by_path, int code_if_lost) {
  std::string trouble;
  for (const auto& [path, text] : texts_by_path) {
    try {
      write_output(path, text);
    } catch (const failure& lost) {
      trouble += fmt::format("{}{}", trouble.empty() ? "" : "; ", lost.what());
    }
  }
  if (!trouble.empty()) throw failure(code_if_lost, trouble);
}

}  // namespace heapwright::tool
