// A form of fixtures/known_code.cpp, loaded into this process, as a probe would write it into a
// segment.
#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <dlfcn.h>
#include <link.h>

#include "segment_reader.hpp"

namespace heapwright::tool {

class loaded_code {
 public:
  explicit loaded_code(const std::string& path) : handle_(dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    link_map* map = nullptr;
    if (handle_ == nullptr || dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0) throw std::runtime_error(dlerror());
    using within = void* (*)(int*, int*);
    using exported = void* (*)();
    address = number(reinterpret_cast<within>(dlsym(handle_, "address_within"))(&line_in_inlined, &line_in_outer));
    address_in_exported = number(reinterpret_cast<exported>(dlsym(handle_, "address_in_exported"))());
    module.base = map->l_addr;
    module.begin = map->l_addr;
    module.end = module.begin + 0x4000;  // the fixture is small
    module.path = path;
  }
  loaded_code(const loaded_code&) = delete;
  loaded_code& operator=(const loaded_code&) = delete;
  ~loaded_code() { dlclose(handle_); }

  segment::module_figures module;
  std::uint64_t address = 0;              ///< a return address in known::widget::inlined, inlined into outer
  std::uint64_t address_in_exported = 0;  ///< one in an exported function
  int line_in_inlined = 0, line_in_outer = 0;

 private:
  static std::uint64_t number(void* p) { return reinterpret_cast<std::uintptr_t>(p); }

  void* handle_;
};

inline std::string fixture(const std::string& name) { return std::string(HEAPWRIGHT_SEGMENT_FIXTURES) + "/" + name; }

}  // namespace heapwright::tool
