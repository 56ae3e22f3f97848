#include "segment_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "failure.hpp"
#include "quantities.hpp"
#include "segment_reader.hpp"

namespace heapwright::tool {
namespace {

constexpr std::string_view folder_prefix = "heapwright-live-";

/// Locked for as long as the descriptor is open. Nothing if somebody else has the lock, or if it is
/// not a folder of this user.
descriptor locked(const std::filesystem::path& folder, int how) {
  descriptor lock(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat about {};
  if (fstat(lock.get(), &about) != 0 || about.st_uid != geteuid() || flock(lock.get(), how) != 0) lock.close();
  return lock;
}

bool has_running_process(const std::filesystem::path& folder) {
  for (const auto& path : segment::segments_in(folder)) {
    try {
      if (segment::is_there(segment::segment_reader(path).process())) return true;
    } catch (const segment::bad_segment&) {
      continue;
    }
  }
  return false;
}

/// Removes what was left by those that were killed: folders that nobody has locked, and to which no
/// process writes.
void sweep(const std::filesystem::path& place) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(place, ignored)) {
    if (!entry.path().filename().native().starts_with(folder_prefix)) continue;
    const descriptor lock = locked(entry.path(), LOCK_EX | LOCK_NB);
    if (lock.get() >= 0 && !has_running_process(entry.path())) std::filesystem::remove_all(entry.path(), ignored);
  }
}

std::vector<std::string> places_for_folders() {
  const char* const chosen = std::getenv("HEAPWRIGHT_SEGMENT_DIR");
  if (chosen != nullptr && *chosen != '\0') return {chosen};
  return {"/dev/shm", "/tmp"};
}

}  // namespace

std::vector<std::filesystem::path> folders_with_segments() {
  std::vector<std::filesystem::path> folders{segment::segment_directory()};
  std::error_code ignored;
  for (const std::string& place : places_for_folders()) {
    for (const auto& entry : std::filesystem::directory_iterator(place, ignored))
      if (entry.path().filename().native().starts_with(folder_prefix)) folders.push_back(entry.path());
  }
  return folders;
}

std::string why_no_segment(const char* who, const std::filesystem::path& folder) {
  std::error_code unknown;
  const auto space = std::filesystem::space(folder, unknown);
  return fmt::format(
      "{} has ended without the probe having seen it call malloc, or without room for a segment: in {}{}, no memory, "
      "or a limit of address space or of files (ulimit -v, -f)",
      who, folder.parent_path().string(),
      unknown ? "" : fmt::format(" ({} free there)", show_bytes(static_cast<double>(space.available))));
}

segment_folder::segment_folder() {
  const std::vector<std::string> places = places_for_folders();
  if (std::getenv("HEAPWRIGHT_SEGMENT_DIR") != nullptr) mkdir(places.front().c_str(), 0700);
  for (const std::string& place : places) {
    sweep(place);
    for (;;) {
      std::string name = fmt::format("{}/{}XXXXXX", place, folder_prefix);
      if (mkdtemp(name.data()) == nullptr) break;
      lock_ = locked(name, LOCK_EX);
      path_ = name;
      // Somebody else's sweep may have come before the lock. Where there are no locks, nobody
      // sweeps.
      if (std::filesystem::exists(path_)) return;
    }
  }
  throw failure(exit_code::bad_input,
                fmt::format("cannot make a folder for the segment in {}: {}", places.back(), std::strerror(errno)));
}

segment_folder::~segment_folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace heapwright::tool
