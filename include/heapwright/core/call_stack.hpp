// Call stacks for messages about mistakes: where a block was asked for, where it was freed.
//
// Capturing reads the unwind tables of the program and allocates nothing. Naming is left to
// addr2line, which runs as a process of its own: only then are there lines of inlined functions,
// and a process that is about to die reads no debugging information. The program does not see that
// process: neither its signals nor its wait tell of it. What addr2line does not name, names after
// the nearest exported function (symbol_table.hpp), or cannot name as it is not installed, is shown
// as OBJECT+OFFSET, which `addr2line -e OBJECT OFFSET` understands.
//
// The program's own frame is the innermost one whose function is not in the namespaces heapwright,
// std or __gnu_cxx: the line that uses a container, not the line of the container. addr2line is not
// always right:
// - The innermost of the functions that are inlined somewhere has the name of the one that it is
//   inlined into: so an inlined function of std whose line is in no header of the C++ library is
//   the program's own.
// - A function that is not inlined can have the first file of its translation unit in place of its
//   own (binutils 2.40, DWARF 5): so such a line of a function of std is left out.
#pragma once

#include <algorithm>
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
#include <unwind.h>

#include <heapwright/core/bits.hpp>
#include <heapwright/core/linker_symbols.hpp>
#include <heapwright/core/symbol_table.hpp>
#include <heapwright/core/text.hpp>

namespace heapwright {

namespace detail {

// What std::string_view has as members: those are functions of the C++ runtime, or would be in
// libheapwright.a beside the program's own.

/// Precondition: `from` is not behind the end.
[[nodiscard]] constexpr std::string_view part(std::string_view s, std::size_t from,
                                              std::size_t n = std::string_view::npos) noexcept {
  return {s.data() + from, std::min(n, s.size() - from)};
}

[[nodiscard]] constexpr bool has_at(std::string_view s, std::size_t at, std::string_view what) noexcept {
  if (at > s.size() || s.size() - at < what.size()) return false;
  for (std::size_t i = 0; i < what.size(); ++i) {
    if (s[at + i] != what[i]) return false;
  }
  return true;
}

[[nodiscard]] constexpr bool is_same(std::string_view s, std::string_view t) noexcept {
  return s.size() == t.size() && has_at(s, 0, t);
}

/// Where `what` begins, from `from` on; npos: nowhere.
[[nodiscard]] constexpr std::size_t find(std::string_view s, std::string_view what, std::size_t from = 0) noexcept {
  for (std::size_t at = from; at + what.size() <= s.size(); ++at) {
    if (has_at(s, at, what)) return at;
  }
  return std::string_view::npos;
}

}  // namespace detail

/// A frame as addr2line names it. Valid during the call that it is passed to.
struct named_frame {
  std::string_view function;  ///< demangled; OBJECT+OFFSET if there is no symbol
  std::string_view line;      ///< FILE:LINE; "??:0" if it is not known; empty if the function is not either
  bool is_inlined = false;    ///< into the function of the frame that follows

  [[nodiscard]] bool has_line() const noexcept {
    return line.size() != 0 && !detail::has_at(line, 0, "??") &&
           (line.size() < 2 || !detail::has_at(line, line.size() - 2, ":?"));
  }

  /// Whether the function belongs to the program, and not to the libraries that lie between it and
  /// an allocator.
  [[nodiscard]] bool is_own() const noexcept {
    const std::string_view name = qualified_name(function);
    for (const std::string_view prefix : {"heapwright::", "operator new", "operator delete"}) {
      if (detail::has_at(name, 0, prefix)) return false;
    }
    if (line.size() == 0 && is_in_runtime()) return false;
    return !is_of_std() || (is_inlined && has_line() && !is_line_of_std());
  }

  /// Without a line that cannot be the function's.
  [[nodiscard]] named_frame corrected() const noexcept {
    const bool is_false = is_of_std() && !is_inlined && !is_line_of_std();
    return is_false ? named_frame{function, "??:0"} : *this;
  }

 private:
  [[nodiscard]] bool is_of_std() const noexcept {
    const std::string_view name = qualified_name(function);
    return detail::has_at(name, 0, "std::") || detail::has_at(name, 0, "__gnu_cxx::");
  }

  /// Of a function without a name: whether its object is the C++ library's.
  [[nodiscard]] bool is_in_runtime() const noexcept {
    return detail::find(function, "/libstdc++.so") != std::string_view::npos ||
           detail::find(function, "/libc++.so") != std::string_view::npos;
  }

  /// Whether the line is one of the C++ library's headers or sources.
  [[nodiscard]] bool is_line_of_std() const noexcept {
    for (const std::string_view folder : {"/c++/", "libstdc++", "libcxx", "heapwright/"}) {
      if (detail::find(line, folder) != std::string_view::npos) return true;
    }
    return false;
  }

  /// Without the type that a template function returns, and without arguments.
  [[nodiscard]] static std::string_view qualified_name(std::string_view f) noexcept {
    std::size_t begin = 0;
    int depth = 0;
    for (std::size_t i = 0; i < f.size(); ++i) {
      if (f[i] == '<') ++depth;
      if (f[i] == '>') --depth;
      if (depth > 0) continue;
      if (f[i] == '(' && i > begin) return detail::part(f, begin, i - begin);
      if (f[i] == ' ' && !detail::is_same(detail::part(f, begin, i - begin), "operator")) begin = i + 1;
    }
    return detail::part(f, begin);
  }
};

class call_stack {
 public:
  static constexpr unsigned most = 16;

  call_stack() noexcept = default;  ///< without frames

  /// The stack of the calling thread from the caller of this function on, the innermost frame
  /// first.
  [[nodiscard, gnu::noinline]] static call_stack here() noexcept {
    call_stack s;
    ::_Unwind_Backtrace(
        [](_Unwind_Context* context, void* to) {
          auto& stack = *static_cast<call_stack*>(to);
          if (const auto pc = ::_Unwind_GetIP(context)) stack.add(pc);
          return stack.count_ <= most ? _URC_NO_REASON : _URC_END_OF_STACK;
        },
        &s);
    s.drop_first();
    return s;
  }

  /// Of `n` return addresses that were found otherwise, the innermost first.
  [[nodiscard]] static call_stack of(const std::uintptr_t* addresses, unsigned n) noexcept {
    call_stack s;
    for (unsigned i = 0; i < n && i < most; ++i) s.add(addresses[i]);
    return s;
  }

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }

  friend bool operator==(const call_stack&, const call_stack&) noexcept = default;
  friend auto operator<=>(const call_stack&, const call_stack&) noexcept = default;

  /// Calls f(named_frame) for each frame, inlined ones too, the innermost first. False: no function
  /// has a name. Takes milliseconds. Allocates nothing.
  template <class F>
  bool for_each_named(F f) const noexcept {
    bool named = false;
    for (unsigned i = 0; i < count_;) {
      const place first = place_of(i);
      unsigned n = 1;
      while (i + n < count_ && place_of(i + n).object == first.object) ++n;
      named = name(i, n, first, f) || named;
      i += n;
    }
    return named;
  }

  /// Calls f(number, named_frame) for the program's own frame, as number 1, and for those outside
  /// of it up to main. False: there is no such frame.
  template <class F>
  bool for_each_own(F f) const noexcept {
    unsigned number = 0;
    bool is_past_main = false;
    for_each_named([&](const named_frame& frame) {
      if ((number > 0 || frame.is_own()) && !is_past_main) f(++number, frame);
      is_past_main = is_past_main || detail::is_same(frame.function, "main");
    });
    return number > 0;
  }

  /// Calls f(text) with a line for each of the program's own frames; or for all frames, without
  /// names, if none is its own.
  template <class F>
  void for_each_line(F f) const noexcept {
    if (for_each_own([&](unsigned number, const named_frame& frame) { f(line_of(number, frame)); })) return;
    for_each_raw_line(f);
  }

  /// Writes these lines.
  void write_to(int fd) const noexcept {
    for_each_line([fd](const text<1000>& line) { line.write_to(fd); });
  }

  /// Writes a line for each frame, without names.
  void write_raw(int fd) const noexcept {
    for_each_raw_line([fd](const text<1000>& line) { line.write_to(fd); });
  }

  static void write_frame(int fd, unsigned number, const named_frame& frame) noexcept {
    line_of(number, frame).write_to(fd);
  }

  /// A frame as OBJECT+OFFSET.
  [[nodiscard]] text<500> raw(unsigned i = 0) const noexcept {
    text<500> out;
    const place at = place_of(i);
    if (at.object == nullptr) return out.add(reinterpret_cast<const void*>(frames_[i])), out;
    out.add(at.object).add("+").add_hex(at.offset);
    return out;
  }

 private:
  struct place {
    const char* object;     ///< path of the file; null: code that is in no file
    std::uintptr_t offset;  ///< as the file says addresses
  };

  static constexpr std::size_t longest_name = 4 * KiB;

  template <class F>
  void for_each_raw_line(F f) const noexcept {
    for (unsigned i = 0; i < count_; ++i) {
      auto with_number = [&](const named_frame& frame) { f(line_of(i + 1, frame)); };
      without_name(i, with_number);
    }
  }

  static text<1000> line_of(unsigned number, const named_frame& frame) noexcept {
    text<1000> line;
    line.add("    #").add(std::uint64_t{number}).add(" ").add(frame.function);
    if (frame.has_line()) line.add(" ").add(frame.line);
    return line.add("\n");
  }

  void add(std::uintptr_t pc) noexcept {
    if (count_ <= most) frames_[count_++] = pc;
  }

  void drop_first() noexcept {
    if (count_ == 0) return;
    std::memmove(frames_.data(), frames_.data() + 1, --count_ * sizeof frames_[0]);
    frames_[count_] = 0;
  }

  /// Of the call instruction, which lies before the address that is returned to.
  [[nodiscard]] place place_of(unsigned i) const noexcept {
    const std::uintptr_t pc = frames_[i] - 1;
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

  [[nodiscard]] static const char* path_of_program() noexcept {
    static char path[4 * KiB];  // every thread writes the same
    return ::readlink("/proc/self/exe", path, sizeof path - 1) > 0 ? path : "program";
  }

  /// Frames [i, i + n), which all lie in one file. False: none has a name.
  template <class F>
  bool name(unsigned i, unsigned n, const place& in, F& f) const noexcept {
    unsigned told = 0;
    const bool is_any_named = in.object != nullptr && read_names(i, n, in.object, told, f);
    for (; told < n; ++told) without_name(i + told, f);
    return is_any_named;
  }

  template <class F>
  void without_name(unsigned i, F& f) const noexcept {
    text<500> at = raw(i);
    f(named_frame{std::string_view(at.c_str(), at.size()), std::string_view()});
  }

  /// For each frame addr2line prints its address, and then a function and a line for it and for
  /// each function that is inlined there. `told`: how many of the frames f has been called for.
  /// False: none has a name.
  template <class F>
  bool read_names(unsigned i, unsigned n, const char* object, unsigned& told, F& f) const noexcept {
    std::array<text<20>, most> offsets;
    std::array<const char*, most + 8> command{"addr2line", "-a", "-C", "-f", "-i", "-e", object};
    for (unsigned k = 0; k < n; ++k) command[7 + k] = offsets[k].add_hex(place_of(i + k).offset).c_str();
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
        const std::size_t first = detail::find(rest, "\n");
        if (first == rest.npos) break;
        if (detail::has_at(rest, 0, "0x")) {
          ++told;
          rest.remove_prefix(first + 1);
          continue;
        }
        const std::size_t second = detail::find(rest, "\n", first + 1);
        if (second == rest.npos) break;
        const std::string_view next = detail::part(rest, second + 1);
        if (next.size() < 2 && !is_at_end) break;
        const named_frame frame = named_frame{detail::part(rest, 0, first),
                                              without_discriminator(detail::part(rest, first + 1, second - first - 1)),
                                              next.size() > 0 && !detail::has_at(next, 0, "0x")}
                                      .corrected();
        const bool is_one_of_these = told > 0 && told <= n;
        const bool is_guessed = is_one_of_these && !frame.has_line() && is_in_no_symbol(i + told - 1, object);
        if (!detail::is_same(frame.function, "??") && !is_guessed) {
          f(frame);
          is_any_named = true;
        } else if (is_one_of_these) {
          without_name(i + told - 1, f);
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

  /// Whether a name that addr2line has for the frame is that of another function.
  [[nodiscard]] bool is_in_no_symbol(unsigned i, const char* object) const noexcept {
    Dl_info found{};
    const bool is_exported =
        ::dladdr(reinterpret_cast<const void*>(frames_[i] - 1), &found) != 0 && found.dli_sname != nullptr;
    return !is_exported && !detail::has_symbol_table(object);
  }

  [[nodiscard]] static std::string_view without_discriminator(std::string_view line) noexcept {
    return detail::part(line, 0, detail::find(line, " (discriminator"));
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

  std::array<std::uintptr_t, most + 1> frames_{};
  unsigned count_ = 0;
};

}  // namespace heapwright
