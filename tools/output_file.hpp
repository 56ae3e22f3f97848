// What a subcommand writes when its work is done: files, and standard output, which is called "-".
//
// A disk that becomes full must not cost the file that was there before. So a file is written
// beside its place, under an unfinished name, and takes its name when it is complete:
//
//   unfinished   the bytes go to FILE.PID-N.unfinished; FILE is as it was
//   finished     rename() has put it in the place of FILE, with FILE's mode and owner
//   given up     the unfinished file is removed; FILE is as it was
//
// A symbolic link stays, and its target is replaced. Written in place are what cannot be replaced
// without becoming something else, and what cannot be written beside: devices, FIFOs, what lies in
// /proc (/dev/stdout), files that are empty (the program that made it may have it open, and read
// the result there; given up, it is emptied again), files with several names (hard links), files
// whose owner could not be kept, files that something is mounted on, and files in a folder that may
// not be written to.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "awaited_signals.hpp"
#include "descriptor.hpp"
#include "failure.hpp"

namespace heapwright::tool {

/// Where the symbolic links of a path lead; absolute.
std::filesystem::path followed(const std::filesystem::path& path);

/// Whether two paths lead to one file, or would if it were made.
bool lead_to_one_file(const std::filesystem::path& a, const std::filesystem::path& b);

/// A file without its name yet. Removed with this object unless it has taken the name.
class unfinished_file {
 public:
  /// Makes an empty file in the folder of `target`, with this mode less the umask. is_open() says
  /// whether that went well; errno says why not.
  unfinished_file(std::filesystem::path target, mode_t mode);
  unfinished_file(const unfinished_file&) = delete;
  unfinished_file& operator=(const unfinished_file&) = delete;
  ~unfinished_file();

  [[nodiscard]] bool is_open() const noexcept { return static_cast<bool>(file_); }
  [[nodiscard]] const descriptor& file() const noexcept { return file_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

  /// Replaces `target`. False: it is as it was, and errno says why.
  bool take_name() noexcept;

  /// The file stays under the name that it has by now. Returns it.
  std::string keep() noexcept { return std::exchange(path_, {}); }

 private:
  std::filesystem::path target_;
  std::string path_;  ///< empty: there is no such file, or it has its name
  descriptor file_;
};

/// SIGINT, SIGTERM, SIGHUP and SIGXFSZ wait until it is finished or given up, unless it is a device
/// or a FIFO, which may keep a writer waiting.
class output_file {
 public:
  /// `mode` of a file that is new, less the umask. Throws failure.
  explicit output_file(std::string path, mode_t mode = 0666);
  output_file(const output_file&) = delete;
  output_file& operator=(const output_file&) = delete;
  ~output_file();

  /// To write to. What was written counts after finish() alone.
  [[nodiscard]] int fd() const noexcept { return beside_ ? beside_->file().get() : in_place_.get(); }

  void write(const std::string& text);

  /// Throws failure if the bytes are not all on the disk, or the file cannot take its name.
  void finish();

  /// Gives the file up, but leaves what was written of it beside the place where it should be.
  /// Returns its name; empty for a file that is written in place.
  std::string keep_unfinished() noexcept { return beside_ ? beside_->keep() : std::string(); }

  /// What to throw when a write has failed; errno says why.
  [[nodiscard]] failure trouble() const;

 private:
  std::string path_;
  std::optional<awaited_signals> held_back_;  ///< outlives the unfinished file
  descriptor in_place_;
  bool was_empty_ = false;
  std::optional<unfinished_file> beside_;
};

/// Throws failure if the path cannot be written to now: to be asked before long work, whose result
/// would be lost. Empty and "-" are no files.
void check_writable(const std::string& path);

/// Throws failure for "-": this option's output cannot go to standard output.
void check_is_a_file(const char* option, const std::string& path);

/// Throws failure where this option's output would replace a file that the work needs: a program, a
/// word of its command that names a file, an input. "-" and devices replace nothing.
void check_replaces_none(const char* option, const std::string& output, const std::vector<std::string>& needed);

/// Throws failure where the outputs of --json and --html cannot be written, would replace what is
/// needed, or go to one place. Empty: not asked for.
void check_json_and_html(const std::string& json, const std::string& html, const std::vector<std::string>& needed);

/// Writes texts to paths, each whatever becomes of the others. Then throws failure with this code
/// if one was lost, and says which and why.
void write_outputs(const std::vector<std::pair<std::string, std::string>>& texts_by_path, int code_if_lost);

}  // namespace heapwright::tool
