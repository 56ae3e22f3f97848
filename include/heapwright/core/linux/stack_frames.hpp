// What a call stack needs from Linux: the frames, where each lies in a file, and names.
//
// Capturing reads the unwind tables of the program and allocates nothing. Naming is left to
// addr2line, which runs as a process of its own: only then are there lines of inlined functions,
// and a process that is about to die reads no debugging information. The program does not see that
// process: neither its signals nor its wait tell of it. What addr2line does not name, names after
// the nearest exported function (symbol_table.hpp), or cannot name as it is not installed, stays
// without a name.
#pragma once

#include <array>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/linux/linker_symbols.hpp>
#include <heapwright/core/linux/symbol_table.hpp>
#include <heapwright/core/named_frame.hpp>
#include <heapwright/core/posix/capture_frames.hpp>
#include <heapwright/core/text.hpp>

namespace heapwright::detail {

class stack_frames {
 public:
  /// Instructions that are named at once.
  static constexpr unsigned most = 16;

  /// Return addresses of the calling thread, the innermost first, that of this function's own frame
  /// included: at most n. Returns how many.
  [[gnu::noinline]] static unsigned capture(std::uintptr_t* to, unsigned n) noexcept { return capture_frames(to, n); }

  /// An instruction as OBJECT+OFFSET; as a number, if it lies in no file.
  [[nodiscard]] static text<500> raw(std::uintptr_t pc) noexcept {
    text<500> out;
    const place at = place_of(pc);
    if (at.object == nullptr) return out.add_hex(pc);
    return out.add(at.object).add("+").add_hex(at.offset);
  }

  /// For each of `n` instructions, at most `most`: calls named(named_frame) for its function and
  /// for those that this one is inlined into, or unnamed(i), as it has no name. False: none has
  /// one.
  template <class Named, class Unnamed>
  static bool name(const std::uintptr_t* pcs, unsigned n, Named named, Unnamed unnamed) noexcept {
    bool is_any_named = false;
    for (unsigned i = 0; i < n;) {
      const char* const object = place_of(pcs[i]).object;
      unsigned in_it = 1;
      while (i + in_it < n && place_of(pcs[i + in_it]).object == object) ++in_it;
      unsigned told = 0;
      const auto without_a_name = [&](unsigned k) { unnamed(i + k); };
      if (object != nullptr) is_any_named |= read_names(pcs + i, in_it, object, told, named, without_a_name);
      for (; told < in_it; ++told) without_a_name(told);
      i += in_it;
    }
    return is_any_named;
  }

 private:
  struct place {
    const char* object;     ///< path of the file; null: code that is in no file
    std::uintptr_t offset;  ///< as the file says addresses
  };

  [[nodiscard]] static place place_of(std::uintptr_t pc) noexcept {
    Dl_info object{};
    if (::dladdr(reinterpret_cast<const void*>(pc), &object) == 0 || object.dli_fname == nullptr) {
      object = {};
      // Of a static program dladdr knows nothing.
      const auto begin = address_of(__ehdr_start);
      if (begin == 0 || pc - begin >= address_of(_end) - begin) return {nullptr, pc};
      object.dli_fbase = const_cast<char*>(__ehdr_start);
    }
    const auto* const file = static_cast<const unsigned char*>(object.dli_fbase);
    Elf64_Half type;
    std::memcpy(&type, file + EI_NIDENT, sizeof type);
    // The main program is named as it was called, which need not be a path.
    const bool is_path = object.dli_fname != nullptr && ::access(object.dli_fname, R_OK) == 0;
    return {is_path ? object.dli_fname : path_of_program(), type == ET_DYN ? pc - address_of(file) : pc};
  }

  static constexpr std::size_t longest_name = 4 * KiB;

  [[nodiscard]] static const char* path_of_program() noexcept {
    static char path[4 * KiB];  // every thread writes the same
    return ::readlink("/proc/self/exe", path, sizeof path - 1) > 0 ? path : "program";
  }

  /// Of instructions that all lie in one file. For each addr2line prints its address, and then a
  /// function and a line for it and for each function that is inlined there. `told`: for how many
  /// of them something was called. False: none has a name.
  template <class Named, class Unnamed>
  static bool read_names(const std::uintptr_t* pcs, unsigned n, const char* object, unsigned& told, Named& named,
                         const Unnamed& unnamed) noexcept {
    std::array<text<20>, most> offsets;
    std::array<const char*, most + 8> command{"addr2line", "-a", "-C", "-f", "-i", "-e", object};
    for (unsigned k = 0; k < n; ++k) command[7 + k] = offsets[k].add_hex(place_of(pcs[k]).offset).c_str();
    command[7 + n] = nullptr;
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return false;
    const pid_t child = run(command.data(), ends[1]);
    ::close(ends[1]);
    char buffer[2 * longest_name];
    std::size_t kept = 0;
    bool is_any_named = false;
    for (bool is_at_end = false; !is_at_end;) {
      const ssize_t got = child < 0 ? 0 : ::read(ends[0], buffer + kept, sizeof buffer - kept);
      if (got < 0 && errno == EINTR) continue;
      is_at_end = got <= 0;
      if (got > 0) kept += static_cast<std::size_t>(got);
      std::string_view rest(buffer, kept);
      for (;;) {
        const std::size_t first = find(rest, "\n");
        if (first == rest.npos) break;
        if (has_at(rest, 0, "0x")) {
          ++told;
          rest.remove_prefix(first + 1);
          continue;
        }
        const std::size_t second = find(rest, "\n", first + 1);
        if (second == rest.npos) break;
        const std::string_view next = part(rest, second + 1);
        if (next.size() < 2 && !is_at_end) break;
        const named_frame frame =
            named_frame{part(rest, 0, first), without_discriminator(part(rest, first + 1, second - first - 1)),
                        next.size() > 0 && !has_at(next, 0, "0x")}
                .corrected();
        const bool is_one_of_these = told > 0 && told <= n;
        const bool is_guessed = is_one_of_these && !frame.has_line() && is_in_no_symbol(pcs[told - 1], object);
        if (!is_same(frame.function, "??") && !is_guessed) {
          named(frame);
          is_any_named = true;
        } else if (is_one_of_these) {
          unnamed(told - 1);
        }
        rest = next;
      }
      kept = rest.size() == sizeof buffer ? 0 : rest.size();  // a name too long to be one
      std::memmove(buffer, rest.data(), kept);
    }
    ::close(ends[0]);
    int status = 0;
    while (child > 0 && ::waitpid(child, &status, __WCLONE) < 0 && errno == EINTR) {
    }
    return is_any_named;
  }

  /// Whether a name that addr2line has for the instruction is that of another function.
  [[nodiscard]] static bool is_in_no_symbol(std::uintptr_t pc, const char* object) noexcept {
    Dl_info found{};
    const bool is_exported = ::dladdr(reinterpret_cast<const void*>(pc), &found) != 0 && found.dli_sname != nullptr;
    return !is_exported && !has_symbol_table(object);
  }

  [[nodiscard]] static std::string_view without_discriminator(std::string_view line) noexcept {
    return part(line, 0, find(line, " (discriminator"));
  }

  /// The process that runs the command; -1: none can be had. It is a child of a child that sends no
  /// signal at its end, which exec would change. Not fork, as that calls handlers that may want a
  /// lock which this thread holds. No signal reaches the child, which has the program's handlers.
  [[nodiscard, gnu::noinline]] static pid_t run(const char* const* command, int out) noexcept {
    sigset_t all, before;
    ::sigfillset(&all);
    ::sigprocmask(SIG_SETMASK, &all, &before);
    const auto child = static_cast<pid_t>(::syscall(SYS_clone, 0UL, nullptr, nullptr, nullptr, nullptr));
    if (child == 0) become(command, out);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return child;
  }

  // The variable tells `heapwright leaks` that the program has not started this.
  [[noreturn]] static void become(const char* const* command, int out) noexcept {
    static const char* const environment[] = {"PATH=/usr/local/bin:/usr/bin:/bin", "HEAPWRIGHT_NAMES_FRAMES=1",
                                              nullptr};
    const pid_t child = ::vfork();
    if (child != 0) {
      ::close(out);
      int status = 0;
      while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
      }
      ::_exit(0);
    }
    ::dup2(out, 1);
    if (const int nowhere = ::open("/dev/null", O_RDWR); nowhere >= 0) {
      ::dup2(nowhere, 0);
      ::dup2(nowhere, 2);
    }
    for (const char* const path : {"/usr/bin/addr2line", "/usr/local/bin/addr2line", "/bin/addr2line"}) {
      ::execve(path, const_cast<char**>(command), const_cast<char**>(environment));
    }
    ::_exit(127);
  }
};

}  // namespace heapwright::detail
