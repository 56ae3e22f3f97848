// Code that takes a std::pmr::memory_resource takes the kit's allocators too.
#include <heapwright/kit.hpp>

#include <cstdio>
#include <memory_resource>
#include <string>
#include <vector>

std::size_t letters(std::pmr::memory_resource& memory) {
  std::pmr::vector<std::pmr::string> words({"an arena", "is freed as a whole", "and needs five instructions"}, &memory);
  std::size_t n = 0;
  for (const auto& word : words) n += word.size();
  return n;
}

int main() {
  heapwright::resource<heapwright::arena<>> memory;
  const std::size_t n = letters(memory);
  std::printf("%zu letters; %zu bytes of the arena are in use\n", n, memory.memory().stats().in_use);
}
