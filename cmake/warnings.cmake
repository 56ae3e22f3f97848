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

# Sanitized code of the tool takes minutes to compile: without optimisation and with headers parsed once it is a third. Other builds parse each
# source's own includes, so that a missing one is found.
function(heapwright_compile_fast_when_sanitized target)
  if(HEAPWRIGHT_SANITIZE)
    target_compile_options(${target} PRIVATE -O0)
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
endfunction()
