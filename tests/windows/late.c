/* Allocates and frees when the process ends, after the system has ended all other threads wherever they were. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>

static void* blocks[1000];

__declspec(dllexport) void fill_late_blocks(void) {
  for (size_t i = 0; i < 1000; ++i) blocks[i] = malloc(100 + 97 * i);
}

static int use_late_blocks(void) {
  for (size_t i = 0; i < 1000; ++i) {
    char* const p = realloc(blocks[i], 10000 + 97 * i);
    if (p == NULL) return 0;
    memset(p, 1, 10000 + 97 * i);
    free(p);
  }
  for (size_t size = 1; size < 3000000; size += size / 2 + 1) {
    char* const p = malloc(size);
    if (p == NULL) return 0;
    memset(p, 1, size);
    free(p);
  }
  return 1;
}

BOOL WINAPI DllMain(HINSTANCE module, DWORD reason, LPVOID reserved) {
  (void)module, (void)reserved;
  if (reason == DLL_PROCESS_DETACH) {
    const char* const said = use_late_blocks() ? "late blocks are freed\n" : "no memory at the end\n";
    DWORD written;
    WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), said, (DWORD)strlen(said), &written, NULL);
  }
  return TRUE;
}
