# Warnings are errors, for our own targets only; sanitizers likewise.
function(heapwright_own_target target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> -Werror)
  if(HEAPWRIGHT_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    # A sanitizer's checks make GCC 12 see uninitialised members in the standard library, in std::regex for one.
    target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
  endif()
  foreach(sanitizer IN LISTS HEAPWRIGHT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${sanitizer} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${sanitizer})
  endforeach()
endfunction()

# The tool takes minutes to compile. Headers are parsed once, and sanitized code is not optimised: that
# is a third of the time. Builds with GCC alone parse each source's own includes, so that a missing one
# is found.
function(heapwright_compile_fast target)
  if(HEAPWRIGHT_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
  endif()
  if(HEAPWRIGHT_SANITIZE OR (CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND NOT CMAKE_UNITY_BUILD))
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
