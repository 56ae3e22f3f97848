// A C program that opens a C++ library when it has long been running, and privately, as
// interpreters do with extension modules. The library's operator new is ours; when it fails it must
// throw what the library catches.
#include <dlfcn.h>
#include <stdlib.h>

#include "../support/opaque.h"
#include "../support/require.h"

int main(void) {
  free(opaque(malloc(opaque_size(10))));
  void* const library = dlopen("libmalloc_test_cxx_plugin.so", RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) fprintf(stderr, "%s\n", dlerror());
  REQUIRE(library != NULL);
  int (*catches_bad_alloc)(void);
  *(void**)&catches_bad_alloc = dlsym(library, "cxx_plugin_catches_bad_alloc");
  REQUIRE(catches_bad_alloc != NULL && catches_bad_alloc() == 3);
  return 0;
}
