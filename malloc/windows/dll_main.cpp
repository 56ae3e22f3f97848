// heapwright.dll: the system says when it is loaded, when a thread ends, and when the process ends.
#include "process_life.hpp"

extern "C" BOOL WINAPI DllMain(HINSTANCE module, DWORD reason, LPVOID) {
  using namespace heapwright::process;
  switch (reason) {
    case DLL_PROCESS_ATTACH: return begin_process(module) ? TRUE : FALSE;
    case DLL_THREAD_DETACH: end_thread(); break;
    case DLL_PROCESS_DETACH: end_process(); break;
    default: break;
  }
  return TRUE;
}
