/* A plugin: is loaded when the program runs. */
#include <stdlib.h>
#include <string.h>

__declspec(dllexport) char* copy_of(const char* s) {
  char* const p = malloc(strlen(s) + 1);
  return p == NULL ? NULL : strcpy(p, s);
}

__declspec(dllexport) void release(char* p) { free(p); }
