# Warnings are errors, for our own targets only; sanitizers likewise.
function(heapwright_own_target target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wno-sign-conversion
    $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor> -Werror)
  foreach(sanitizer IN LISTS HEAPWRIGHT_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${sanitizer} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PRIVATE -fsanitize=${sanitizer})
  endforeach()
endfunction()
