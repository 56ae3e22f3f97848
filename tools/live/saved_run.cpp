#include "saved_run.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <zlib.h>

#include "descriptor.hpp"
#include "failure.hpp"
#include "output_file.hpp"
#include "past_json.hpp"
#include "printable.hpp"
#include "utf8.hpp"

namespace heapwright::tool {
namespace {

using json = nlohmann::ordered_json;

constexpr const char* format_name = "heapwright saved run 1";
constexpr std::size_t longest_header = 256 << 20, longest_segment = std::size_t{1} << 40, most_processes = 100'000;

struct part {
  std::uint64_t begin = 0, bytes = 0;
};

failure cannot_read(const std::string& file, const std::string& why) {
  return {exit_code::bad_input, fmt::format("{} cannot be read: {}", file, why)};
}

/// What of a sparse file is no hole.
std::vector<part> parts_of_file(const descriptor& file) {
  std::vector<part> parts;
  for (off_t at = lseek(file.get(), 0, SEEK_DATA); at >= 0; at = lseek(file.get(), at, SEEK_DATA)) {
    const off_t end = lseek(file.get(), at, SEEK_HOLE);
    if (end <= at) break;
    parts.push_back({static_cast<std::uint64_t>(at), static_cast<std::uint64_t>(end - at)});
    at = end;
  }
  return parts;
}

class packed_writer {
 public:
  explicit packed_writer(const std::string& file) : file_(file, 0600), stream_(gzdopen(dup(file_.fd()), "wb1")) {
    if (stream_ == nullptr) throw file_.trouble();
  }
  packed_writer(const packed_writer&) = delete;
  packed_writer& operator=(const packed_writer&) = delete;
  ~packed_writer() {
    if (stream_ != nullptr) gzclose(stream_);
  }

  void write(const void* bytes, std::size_t count) {
    if (count > 0 && gzwrite(stream_, bytes, static_cast<unsigned>(count)) != static_cast<int>(count))
      throw file_.trouble();
  }

  void finish() {
    if (gzclose(std::exchange(stream_, nullptr)) != Z_OK) throw file_.trouble();
    file_.finish();
  }

 private:
  output_file file_;
  gzFile stream_;
};

/// A part grows no longer while it is copied: what a program adds meanwhile is not in it.
void write_part(packed_writer& out, const descriptor& file, const part& p) {
  std::vector<char> buffer(1 << 20);
  for (std::uint64_t done = 0; done < p.bytes;) {
    const auto wanted = std::min<std::uint64_t>(buffer.size(), p.bytes - done);
    const ssize_t n = pread(file.get(), buffer.data(), wanted, static_cast<off_t>(p.begin + done));
    if (n <= 0) std::memset(buffer.data(), 0, wanted);  // cut off since
    const std::uint64_t got = n > 0 ? static_cast<std::uint64_t>(n) : wanted;
    out.write(buffer.data(), got);
    done += got;
  }
}

class packed_reader {
 public:
  explicit packed_reader(const std::string& file) : name_(file), stream_(gzopen(file.c_str(), "rbe")) {
    if (stream_ == nullptr) throw cannot_read(name_, std::strerror(errno));
  }
  packed_reader(const packed_reader&) = delete;
  packed_reader& operator=(const packed_reader&) = delete;
  ~packed_reader() { gzclose(stream_); }

  void read(void* bytes, std::size_t count) {
    if (gzread(stream_, bytes, static_cast<unsigned>(count)) != static_cast<int>(count))
      throw cannot_read(name_, "it is cut off or damaged");
  }

  /// Only at its end is the sum over all bytes compared.
  void must_be_at_its_end() {
    char more = 0;
    if (gzread(stream_, &more, 1) != 0) throw cannot_read(name_, "it is damaged");
  }

  std::string line() {
    std::string text;
    for (char some[4096]; text.size() < longest_header && gzgets(stream_, some, sizeof some) != nullptr;) {
      text += some;
      if (text.ends_with('\n')) return text;
    }
    throw cannot_read(name_, "it is cut off or damaged");
  }

 private:
  std::string name_;
  gzFile stream_;
};

bool is_packed(const std::string& file) {
  const descriptor opened(open(file.c_str(), O_RDONLY | O_CLOEXEC));
  unsigned char begin[2]{};
  return pread(opened.get(), begin, sizeof begin, 0) == 2 && begin[0] == 0x1f && begin[1] == 0x8b;
}

void unpack_segment(packed_reader& in, const json& process, const std::filesystem::path& into) {
  const std::uint64_t length = process.at("bytes");
  const descriptor file(open(into.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (length > longest_segment || file.get() < 0 || ftruncate(file.get(), static_cast<off_t>(length)) != 0)
    throw cannot_read(into, std::strerror(errno));
  std::vector<char> buffer(1 << 20);
  for (const json& p : process.at("parts")) {
    const std::uint64_t begin = p.at(0), bytes = p.at(1);
    if (begin > length || bytes > length - begin) throw json::other_error::create(501, "a part is no part", &p);
    for (std::uint64_t done = 0; done < bytes;) {
      const std::size_t some = std::min<std::uint64_t>(buffer.size(), bytes - done);
      in.read(buffer.data(), some);
      if (pwrite(file.get(), buffer.data(), some, static_cast<off_t>(begin + done)) != static_cast<ssize_t>(some))
        throw cannot_read(into, std::strerror(errno));
      done += some;
    }
  }
}

bool is_plain_name(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789-") == std::string::npos;
}

}  // namespace

void save_run(const std::string& file, const std::vector<saved_process>& processes) {
  json header{{"format", format_name}, {"processes", json::array()}};
  std::vector<std::pair<descriptor, std::vector<part>>> segments;
  for (const saved_process& p : processes) {
    descriptor segment(open(p.segment.c_str(), O_RDONLY | O_CLOEXEC));
    if (segment.get() < 0) throw cannot_read(p.segment, std::strerror(errno));
    std::vector<part> parts = parts_of_file(segment);
    json row{{"name", p.name}, {"bytes", lseek(segment.get(), 0, SEEK_END)}, {"parts", json::array()}};
    for (const part& one : parts) row["parts"].push_back({one.begin, one.bytes});
    if (p.past) row["past"] = json_of(*p.past);
    header["processes"].push_back(std::move(row));
    segments.emplace_back(std::move(segment), std::move(parts));
  }
  packed_writer out(file);
  const std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace) + '\n';
  out.write(text.data(), text.size());
  for (const auto& [segment, parts] : segments)
    for (const part& p : parts) write_part(out, segment, p);
  out.finish();
}

opened_run::opened_run(const std::string& file) : file_(file) {
  if (is_packed(file))
    unpack(file);
  else
    processes_.push_back({std::filesystem::path(file).stem(), file, std::nullopt});
}

std::filesystem::path opened_run::folder() const { return folder_ ? folder_->path() : std::filesystem::path(); }

void opened_run::unpack(const std::string& file) {
  packed_reader in(file);
  folder_ = std::make_unique<segment_folder>();
  try {
    const json header = json::parse(in.line());
    if (header.at("format") != format_name)
      throw cannot_read(
          file, fmt::format("its format is {}, and this heapwright reads {}", header.at("format").dump(), format_name));
    const json& processes = header.at("processes");
    if (!processes.is_array() || processes.empty() || processes.size() > most_processes)
      throw cannot_read(file, "it has no processes");
    for (const json& p : processes) {
      saved_process one{p.at("name"), {}, std::nullopt};
      if (!is_plain_name(one.name)) throw cannot_read(file, "a process has no name that a segment has");
      one.segment = folder_->path() / (one.name + ".segment");
      unpack_segment(in, p, one.segment);
      if (p.contains("past")) one.past = past_of(p.at("past"));
      processes_.push_back(std::move(one));
    }
    in.must_be_at_its_end();
  } catch (const json::exception& trouble) {
    throw cannot_read(file, fmt::format("it is no saved run ({})", printable(as_utf8(trouble.what()), 300)));
  }
}

}  // namespace heapwright::tool
