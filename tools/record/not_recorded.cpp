#include "not_recorded.hpp"

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace heapwright::tool {
namespace {

const char* likely_reason(int error) {
  switch (error) {
    case EFBIG: return " (ulimit -f; 1 GiB is enough)";
    case EMFILE: return " (ulimit -n)";
    case ENOMEM: return " (ulimit -v)";
    case ENOSPC: return " (each process takes some 7 MiB, and 512 KiB more for each thread)";
    case EACCES:
    case EPERM:
    case ENOENT: return " (its user or its root folder has changed)";
    default: return "";
  }
}

}  // namespace

std::string why_not_recorded(int error, const std::filesystem::path& folder) {
  return fmt::format("it could not make its file in {}: {}{}", folder.string(), std::strerror(error),
                     likely_reason(error));
}

}  // namespace heapwright::tool
