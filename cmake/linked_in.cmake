# Libraries that the command brings with it, so that it starts on a system that has libc alone:
#   heapwright_elfutils  libdw, libelf and what they decompress with
#   heapwright_zlib      zlib
#   heapwright_fmt       fmt
# Debian has the former as archives. Where a system does not, the command needs the shared ones, and
# HEAPWRIGHT_IS_SELF_CONTAINED is off.
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
pkg_check_modules(LIBDW REQUIRED IMPORTED_TARGET libdw libelf)
add_library(heapwright_elfutils INTERFACE)
add_library(heapwright_zlib INTERFACE)
set(HEAPWRIGHT_IS_SELF_CONTAINED ON)
set(archives "")
foreach(name dw elf lzma bz2 z)
  find_library(HEAPWRIGHT_ARCHIVE_${name} lib${name}.a)
  mark_as_advanced(HEAPWRIGHT_ARCHIVE_${name})
  list(APPEND archives ${HEAPWRIGHT_ARCHIVE_${name}})
  if(NOT HEAPWRIGHT_ARCHIVE_${name})
    message(STATUS "No lib${name}.a: the command needs shared libraries of elfutils")
    set(HEAPWRIGHT_IS_SELF_CONTAINED OFF)
  endif()
endforeach()
if(HEAPWRIGHT_IS_SELF_CONTAINED)
  target_link_libraries(heapwright_elfutils INTERFACE ${archives})
  target_link_libraries(heapwright_zlib INTERFACE ${HEAPWRIGHT_ARCHIVE_z})
  target_include_directories(heapwright_elfutils SYSTEM INTERFACE ${LIBDW_INCLUDE_DIRS})
else()
  find_package(ZLIB REQUIRED)
  target_link_libraries(heapwright_elfutils INTERFACE PkgConfig::LIBDW)
  target_link_libraries(heapwright_zlib INTERFACE ZLIB::ZLIB)
endif()

# Debian has fmt as a shared library and as headers. One source file has what the library has: with
# headers alone each file that formats takes two seconds longer to compile. Clang makes one of two
# equal destructors an alias, and leaves it out of a file that refers to the other only.
get_target_property(fmt_headers fmt::fmt INTERFACE_INCLUDE_DIRECTORIES)
add_library(heapwright_fmt STATIC ${CMAKE_CURRENT_LIST_DIR}/linked_in_fmt.cpp)
target_include_directories(heapwright_fmt SYSTEM PUBLIC ${fmt_headers})
target_compile_options(heapwright_fmt PRIVATE -fno-inline
  $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -mno-constructor-aliases>)
