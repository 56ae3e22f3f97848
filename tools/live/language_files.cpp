#include "language_files.hpp"

#include <algorithm>
#include <array>

namespace heapwright::tool {
namespace {

constexpr auto npos = std::string_view::npos;

struct installed {
  std::string_view folder;
  bool has_version = false;      ///< a folder with a version follows
  bool names_version = false;    ///< the package's own folder has its version in its name: rack-2.2.4
  unsigned parts = 1;            ///< of the package's name
  std::string_view ending = {};  /// of such files; empty: any
};

constexpr std::array packages{
    installed{"/site-packages/"},
    installed{"/dist-packages/"},
    installed{"/node_modules/"},
    installed{"/gems/", false, true},
    installed{"/site_perl/", true},
    installed{"/vendor_perl/", true},
    installed{"/usr/share/perl5/"},
    installed{"/usr/local/share/perl/", true},
    installed{"-linux-gnu/perl5/", true},
    installed{"/usr/share/php/"},
    installed{"/vendor/", false, false, 2, ".php"},
};

bool has(std::string_view path, std::string_view part) { return path.find(part) != npos; }

/// Whether a number follows this, as in /lib/ruby/3.1.0.
bool has_number_behind(std::string_view path, std::string_view part) {
  const std::size_t at = path.find(part);
  return at != npos && at + part.size() < path.size() && path[at + part.size()] >= '0' && path[at + part.size()] <= '9';
}

/// Where the package's name begins; npos: the file is not installed so.
std::size_t package_begin(std::string_view path, const installed& as) {
  std::size_t at = path.rfind(as.folder);
  if (at == npos || !path.ends_with(as.ending)) return npos;
  at += as.folder.size();
  if (!as.has_version || at >= path.size() || path[at] < '0' || path[at] > '9') return at;
  const std::size_t behind_version = path.find('/', at);
  return behind_version == npos ? at : behind_version + 1;
}

std::string name_from(std::string_view path, std::size_t begin, const installed& as) {
  std::size_t end = path.find('/', begin);
  const bool is_of_scope = begin < path.size() && path[begin] == '@';  // @scope/name
  if ((is_of_scope || as.parts == 2) && end != npos) end = path.find('/', end + 1);
  // A package of one file is that file.
  if (end == npos) end = path.find('.', begin);
  const std::string_view name = path.substr(begin, end == npos ? end : end - begin);
  if (!as.names_version) return std::string(name);
  std::size_t version = name.find('-');
  while (version != npos && (version + 1 == name.size() || name[version + 1] < '0' || name[version + 1] > '9'))
    version = name.find('-', version + 1);
  return std::string(name.substr(0, version));
}

/// The innermost of the folders in which packages are.
std::pair<std::size_t, const installed*> innermost_package(std::string_view path) {
  std::pair<std::size_t, const installed*> found{npos, nullptr};
  for (const installed& as : packages) {
    const std::size_t begin = package_begin(path, as);
    if (begin != npos && (found.second == nullptr || begin > found.first)) found = {begin, &as};
  }
  return found;
}

bool is_of_rust(std::string_view file) {
  return file.starts_with("/rustc/") || file.starts_with("/rust/deps/") || has(file, "/rustlib/src/rust/library/");
}

bool is_of_zig(std::string_view file) {
  return file.ends_with(".zig") && (has(file, "/lib/std/") || has(file, "/zig/std/"));
}

/// Whether a path begins with the folder of one of Go's own packages.
bool begins_with_gos_package(std::string_view path) {
  constexpr auto folders = std::to_array<std::string_view>(
      {"archive", "bufio",    "bytes",   "cmp",    "compress", "container", "context", "crypto",  "database", "debug",
       "embed",   "encoding", "errors",  "expvar", "flag",     "fmt",       "go",      "hash",    "html",     "image",
       "index",   "internal", "io",      "iter",   "log",      "maps",      "math",    "mime",    "net",      "os",
       "path",    "plugin",   "reflect", "regexp", "runtime",  "slices",    "sort",    "strconv", "strings",  "sync",
       "syscall", "testing",  "text",    "time",   "unicode",  "unique",    "vendor",  "weak"});
  const std::size_t end = path.find('/');
  return end != npos && std::ranges::find(folders, path.substr(0, end)) != folders.end();
}

/// Where Go is installed: /usr/local/go, /usr/lib/go-1.19, ~/sdk/go1.22.0. But ~/go/src has the
/// user's own packages.
bool is_gos_folder(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  return name == "go" || name == "golang" || name.starts_with("go1.") || name.starts_with("go-1.") ||
         has(path, "/toolcache/go/") || has(path, "/hostedtoolcache/go/") || has(path, "/golang.org/toolchain@");
}

bool is_of_go(std::string_view file) {
  // What the compiler makes of import "C".
  if (file.ends_with("_cgo_gotypes.go") || file.ends_with("/cgo-gcc-prolog")) return true;
  if (!file.starts_with('/')) return file.ends_with(".go") && begins_with_gos_package(file);  // by -trimpath
  const std::size_t source = file.find("/src/");
  return source != npos && is_gos_folder(file.substr(0, source)) && begins_with_gos_package(file.substr(source + 5));
}

/// The crate of a file that Cargo has got.
std::string crate_of(std::string_view file) {
  constexpr std::string_view registry = "/registry/src/";
  std::size_t begin = file.find(registry);
  if (begin == npos) return {};
  begin = file.find('/', begin + registry.size()) + 1;  // behind the name of the registry
  const std::string_view folder = file.substr(begin, file.find('/', begin) - begin);
  return std::string(folder.substr(0, folder.rfind('-')));  // without its version
}

/// The module of a file that Go has got, without its version.
std::string module_of_go(std::string_view file) {
  constexpr std::string_view modules = "/pkg/mod/", copies = "/vendor/";
  const std::size_t version = has_number_behind(file, "@v") ? file.find("@v") : npos;
  const std::size_t folder = file.find(modules);
  if (version != npos && folder < version) {
    const std::size_t begin = folder + modules.size();
    return std::string(file.substr(begin, version - begin));
  }
  if (version != npos && !file.starts_with('/') && file.ends_with(".go"))  // by -trimpath
    return std::string(file.substr(0, version));
  // Of `go mod vendor`: host, owner and name. Which of these are the module's is not in the path.
  const std::size_t copy = file.rfind(copies);
  if (copy == npos || !file.ends_with(".go")) return {};
  const std::size_t begin = copy + copies.size();
  std::size_t end = begin;
  for (int part = 0; part < 3 && end != npos; ++part) end = file.find('/', end + 1);
  return end == npos ? std::string() : std::string(file.substr(begin, end - begin));
}

}  // namespace

std::string_view language_of_source(std::string_view file) {
  if (is_of_rust(file)) return "rust";
  if (is_of_zig(file)) return "zig";
  if (is_of_go(file)) return "go";
  return {};
}

std::string package_of_source(std::string_view file) {
  std::string crate = crate_of(file);
  return crate.empty() ? module_of_go(file) : crate;
}

std::string_view language_of_interpreter(std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto is = [name](std::string_view program, std::string_view with_version, std::string_view library) {
    return name == program || name.starts_with(with_version) || name.starts_with(library);
  };
  if (is("python", "python3", "libpython3.")) return "python";
  if (is("ruby", "ruby3", "libruby") || name.starts_with("ruby2")) return "ruby";
  if (is("perl", "perl5", "libperl.so")) return "perl";
  if (is("php", "php-fpm", "libphp") || name.starts_with("php7") || name.starts_with("php8")) return "php";
  return {};
}

std::string_view language_of_library(std::string_view path) {
  if (path.starts_with("<frozen ")) return "python";
  if (path.starts_with("node:")) return "node";
  if (path.starts_with("<internal:")) return "ruby";
  if (is_of_package(path)) return {};
  if (has(path, "/lib/python3.")) return "python";
  if (has_number_behind(path, "/ruby/") || has(path, "/vendor_ruby/rubygems") || has(path, "/site_ruby/"))
    return "ruby";
  if (has(path, "/perl-base/") || has_number_behind(path, "/share/perl/") || has_number_behind(path, "/lib/perl5/") ||
      (has(path, "/lib/") && has_number_behind(path, "-linux-gnu/perl/")) || has(path, "/lib/5."))
    return "perl";
  if (has_number_behind(path, "/lib/php/")) return "php";
  return {};
}

std::string package_in(std::string_view path) {
  const auto [begin, as] = innermost_package(path);
  return as == nullptr ? std::string() : name_from(path, begin, *as);
}

bool is_of_package(std::string_view path) { return innermost_package(path).second != nullptr; }

}  // namespace heapwright::tool
