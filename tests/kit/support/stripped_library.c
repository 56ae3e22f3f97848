// A library without a symbol table: of the second function nothing but the address is known, and
// the first, which is exported, is the nearest before it.
#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED
#endif

typedef void callback(void*);

// Something behind the call: without it the call would be a jump.
static volatile int calls;

EXPORTED void stripped_library_exported(callback* f, void* argument) {
  f(argument);
  ++calls;
}

__attribute__((noinline, section(".text.behind"))) static void not_exported(callback* f, void* argument) {
  f(argument);
  ++calls;
}

typedef void caller(callback*, void*);
EXPORTED caller* stripped_library_other(void) { return not_exported; }
