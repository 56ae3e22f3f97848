#include "advice_code.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "printable.hpp"

namespace heapwright::tool {
namespace {

using lines = std::vector<std::string>;

/// "tree.cpp:12", or the function where the line is not known.
std::string place_of(const program_site& site) {
  if (site.file.empty()) return printable(site.function);
  return printable(fmt::format("{}:{}", site.file.substr(site.file.rfind('/') + 1), site.line));
}

const char* storage(std::uint64_t threads) { return threads > 1 ? "thread_local" : "static"; }

/// Two functions for the site, in place of malloc or new and of free or delete.
lines of_calls(const std::string& declaration, const std::string& take, const std::string& give,
               const std::string& where) {
  return {"#include <heapwright/kit.hpp>", declaration,
          fmt::format("void* take_block(std::size_t bytes) {{ {} }}  // {}", take, where),
          fmt::format("void give_block(void* p, std::size_t bytes) {{ {} }}", give)};
}

bool makes_shared(const program_site& site) {
  return site.container.empty() && site.through.find("std::make_shared") != std::string::npos;
}

/// A container of the site's kind with kit_allocator, or what else has its memory from an
/// allocator.
const char* container_with_allocator(const program_site& site) {
  if (makes_shared(site)) return "auto p = std::allocate_shared<int>(kit_allocator<int>(memory));";
  if (site.container == "std::string")
    return "std::basic_string<char, std::char_traits<char>, kit_allocator<char>> s(memory);";
  if (site.container == "std::unordered_map or set")
    return "std::unordered_set<int, std::hash<int>, std::equal_to<>, kit_allocator<int>> u(memory);";
  if (site.container == "std::map or set") return "std::set<int, std::less<>, kit_allocator<int>> o(memory);";
  if (site.container == "std::list") return "std::list<int, kit_allocator<int>> l(memory);";
  if (site.container == "std::deque") return "std::deque<int, kit_allocator<int>> d(memory);";
  return "std::vector<int, kit_allocator<int>> v(memory);";
}

/// An allocator for the container's type, and the container with it.
lines of_container(const std::string& type, const std::string& memory, const program_site& site) {
  return {"#include <heapwright/kit.hpp>", fmt::format("using memory_type = {};", type),
          "template <class T> using kit_allocator = heapwright::std_allocator<T, memory_type>;", memory,
          fmt::format("// {}: {}", place_of(site), container_with_allocator(site))};
}

lines for_arena(const program_site& site, std::uint64_t threads) {
  const std::string where = place_of(site);
  const std::string type = "heapwright::arena<heapwright::upstream_malloc, heapwright::take_back::nothing>";
  const std::string memory = fmt::format("{} memory;", type);
  if (site.is_container)
    return of_container(
        type, fmt::format("{} memory_type memory;  // memory.reset() when the last one has died", storage(threads)),
        site);
  return {"#include <heapwright/kit.hpp>", fmt::format("{} {}", storage(threads), memory),
          fmt::format(
              "void* take_block(std::size_t bytes) {{ return memory.allocate({{bytes, 8}}); }}  // in place of what "
              "allocates at {}",
              where),
          "void give_blocks() { memory.reset(); }  // when the last one has died, in place of all frees"};
}

lines for_pool(const advice& what, const program_site& site, std::uint64_t threads) {
  const bool is_shared = what.kind == advice_kind::shared_pool;
  const std::string type = is_shared ? "heapwright::concurrent_pool<>" : "heapwright::pool<>";
  const std::string where = place_of(site);
  const char* const kept = is_shared ? "static" : storage(threads);
  if (site.is_container)
    return of_container(
        fmt::format("heapwright::fallback<{}, heapwright::upstream_malloc>", type),
        fmt::format("{} memory_type memory{{heapwright::from(heapwright::layout{{{}, 8}}), heapwright::from()}};", kept,
                    what.bytes),
        site);
  return {"#include <heapwright/kit.hpp>",
          fmt::format("{} {} blocks(heapwright::layout{{{}, 8}});", kept, type, what.bytes),
          fmt::format("void* take_block() {{ return blocks.allocate(); }}  // in place of what allocates at {}", where),
          "void give_block(void* p) { blocks.deallocate(p); }"};
}

lines for_stack_arena(const advice& what, const program_site& site, std::uint64_t threads) {
  const std::string where = place_of(site);
  if (site.is_container)
    return of_container(
        fmt::format("heapwright::stack_arena<{}>", what.bytes),
        fmt::format("{} memory_type memory;  // or within the function, before the container", storage(threads)), site);
  return of_calls(fmt::format("{} heapwright::stack_arena<{}> memory;", storage(threads), what.bytes),
                  "return memory.allocate({bytes, 8});", "memory.deallocate(p, {bytes, 8});",
                  fmt::format("in place of what allocates at {}", where));
}

lines for_small_buffer(const advice& what, const program_site& site) {
  const std::string where = place_of(site);
  if (site.is_container)
    return {"#include <heapwright/kit.hpp>",
            fmt::format("using memory_type = heapwright::stack_arena<{}>;", what.bytes),
            "template <class T> using kit_allocator = heapwright::std_allocator<T, memory_type>;",
            fmt::format("// {}: memory_type memory; {}", where, container_with_allocator(site))};
  return {"#include <cstdlib>",
          fmt::format("struct short_block {{  // within the owner, in place of the pointer at {}", where),
          fmt::format("  alignas(16) unsigned char own[{}];", what.bytes),
          "  void* take(std::size_t bytes) { return bytes <= sizeof own ? own : std::malloc(bytes); }",
          "  void give(void* p) { if (p != own) std::free(p); }  // one block at a time",
          "};"};
}

lines for_reserve(const advice& what, const program_site& site) {
  const std::string where = place_of(site);
  const std::uint64_t bytes = std::max<std::uint64_t>(what.bytes, 1);
  if (site.is_container)
    return {"#include <cstddef>",
            fmt::format("constexpr std::size_t usual_bytes = {};  // or what the program knows", bytes),
            "template <class C> void expect(C& c) { c.reserve(usual_bytes / sizeof(typename C::value_type)); }",
            fmt::format("// before it grows at {}: expect(values);", where)};
  return {"#include <cstdlib>",
          fmt::format("constexpr std::size_t usual_bytes = {};  // or what the program knows", bytes),
          "void* first_block(std::size_t bytes) { return std::malloc(bytes < usual_bytes ? usual_bytes : bytes); }",
          fmt::format("// and realloc at {} only where more than that is needed", where)};
}

}  // namespace

std::vector<std::string> code_for(const advice& what, const program_site& site, std::uint64_t threads) {
  switch (what.kind) {
    case advice_kind::small_buffer: return for_small_buffer(what, site);
    case advice_kind::reserve: return for_reserve(what, site);
    case advice_kind::stack_arena: return for_stack_arena(what, site, threads);
    case advice_kind::arena: return for_arena(site, threads);
    case advice_kind::pool:
    case advice_kind::shared_pool: return for_pool(what, site, threads);
    case advice_kind::hand_over:
      return {"#include <heapwright/heap/recipe.hpp>",
              "inline constexpr heapwright::recipe keeping = [] {",
              "  heapwright::recipe r;",
              "  r.thread_cache.keep_remote = true;",
              "  return r;",
              "}();  // heapwright build recipe.hpp -o libmine.so"};
  }
  return {};
}

}  // namespace heapwright::tool
