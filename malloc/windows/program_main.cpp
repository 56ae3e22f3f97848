// libheapwright.a: the malloc within a program. The system calls what a program has in its table of
// callbacks of thread-local storage as it calls DllMain of a library: before any code of the
// program, when a thread ends, and when the process ends.
#include "process_life.hpp"

namespace heapwright::process {
namespace {

void NTAPI note(void*, DWORD reason, void*) {
  switch (reason) {
    case DLL_PROCESS_ATTACH: (void)begin_process(::GetModuleHandleW(nullptr)); break;
    case DLL_THREAD_DETACH: end_thread(); break;
    case DLL_PROCESS_DETACH: end_process(); break;
    default: break;
  }
}

// The linker sorts what lies in .CRT$XL* between the beginning and the end of the table.
[[gnu::used, gnu::section(".CRT$XLB")]] const PIMAGE_TLS_CALLBACK entry_of_table = note;

/// As the program returns or calls exit. wine does not call the table at the end of a process.
[[gnu::destructor]] void note_exit() noexcept { end_process(); }

}  // namespace
}  // namespace heapwright::process
