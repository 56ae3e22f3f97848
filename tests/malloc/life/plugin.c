// A plugin as programs open it, some with RTLD_DEEPBIND: then its malloc and free are looked up in
// libc first.
#include <stdlib.h>
#include <string.h>

char* plugin_duplicate(const char* text);
char* plugin_allocate(void);
void plugin_free(void* p);

char* plugin_duplicate(const char* text) { return strdup(text); }

char* plugin_allocate(void) {
  char* const p = (char*)malloc(64);
  if (p != NULL) strcpy(p, "from the plugin");
  return p;
}

void plugin_free(void* p) { free(p); }
