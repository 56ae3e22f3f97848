/* Allocates while it is loaded, which is before heapwright.dll is. */
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static char* early_block;

BOOL WINAPI DllMain(HINSTANCE module, DWORD reason, LPVOID reserved) {
  (void)module, (void)reserved;
  if (reason == DLL_PROCESS_ATTACH) {
    early_block = malloc(100);
    strcpy(early_block, "early");
  }
  return TRUE;
}

/** To be freed by the caller, who may use another C library. */
__declspec(dllexport) char* take_early_block(void) { return early_block; }
