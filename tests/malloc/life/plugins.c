// Pointers cross between a program and plugins, also such that were opened with RTLD_DEEPBIND:
// freed on the other side, in both directions, from malloc and from libc's own strdup. The plugin
// is opened by its bare name, which the loader must look for where the calling program's RUNPATH
// says, though dlopen itself passes through our library.
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "../support/opaque.h"
#include "../support/require.h"

static void cross_pointers(int mode) {
  void* const plugin = dlopen("libmalloc_test_plugin.so", mode);
  if (plugin == NULL) fprintf(stderr, "%s\n", dlerror());
  REQUIRE(plugin != NULL);
  char* (*duplicate)(const char*);
  char* (*allocate)(void);
  void (*release)(void*);
  *(void**)&duplicate = dlsym(plugin, "plugin_duplicate");
  *(void**)&allocate = dlsym(plugin, "plugin_allocate");
  *(void**)&release = dlsym(plugin, "plugin_free");
  REQUIRE(duplicate != NULL && allocate != NULL && release != NULL);

  for (int i = 0; i < 100; ++i) {
    char* const theirs = allocate();
    REQUIRE(theirs != NULL && strcmp(theirs, "from the plugin") == 0);
    free(theirs);
    char* copy = duplicate("a text that was copied by libc");
    REQUIRE(strcmp(copy, "a text that was copied by libc") == 0);
    copy = (char*)realloc(copy, opaque_size(100000));
    REQUIRE(copy != NULL && strcmp(copy, "a text that was copied by libc") == 0);
    release(copy);
    release(duplicate("freed where it was made"));
    release(opaque(malloc(opaque_size((size_t)i * 1000))));
    release(strdup("made here, freed there"));
  }
  dlclose(plugin);
}

int main(void) {
  cross_pointers(RTLD_NOW | RTLD_DEEPBIND);
  cross_pointers(RTLD_LAZY | RTLD_LOCAL | RTLD_DEEPBIND);
  cross_pointers(RTLD_NOW | RTLD_GLOBAL);
  REQUIRE(dlopen("libthere-is-no-such-library.so", RTLD_NOW) == NULL);
  REQUIRE(strstr(dlerror(), "libthere-is-no-such-library.so") != NULL);
  return 0;
}
