# The programs that try whatever malloc is preloaded. They come with the tool too, for `heapwright build --check`.
find_package(Threads REQUIRED)

function(heapwright_program name)
  add_executable(${name} ${ARGN})
  heapwright_own_target(${name})
  target_compile_definitions(${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:_GNU_SOURCE>)
  # The compiler knows malloc, and would take pairs of calls away; Clang has sized deletes only on request.
  target_compile_options(${name} PRIVATE -fno-builtin $<$<COMPILE_LANGUAGE:CXX>:-fsized-deallocation>)
  target_link_libraries(${name} PRIVATE Threads::Threads)
endfunction()

foreach(test loaded c_entries errno calloc realloc alignment cxx_entries new_handler glibc_extras)
  list(APPEND conformance_tests ${CMAKE_CURRENT_LIST_DIR}/conformance/${test}_test.cpp)
endforeach()
heapwright_program(malloc_conformance ${conformance_tests})
target_link_libraries(malloc_conformance PRIVATE GTest::gtest_main ${CMAKE_DL_LIBS})
heapwright_program(malloc_limit ${CMAKE_CURRENT_LIST_DIR}/stress/malloc_limit.cpp)
heapwright_program(stress ${CMAKE_CURRENT_LIST_DIR}/stress/stress.cpp ${CMAKE_CURRENT_LIST_DIR}/stress/operations.cpp)
