/* What zone.hpp uses of the header of this name of macOS, for a test that runs elsewhere. The members have their types and their
   order of there; those that nothing sets are left out. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef int boolean_t;
typedef int kern_return_t;
typedef unsigned task_t;
typedef uintptr_t vm_address_t;
typedef uintptr_t vm_size_t;
typedef struct {
  vm_address_t address;
  vm_size_t size;
} vm_range_t;

#define KERN_SUCCESS 0
#define KERN_NOT_SUPPORTED 46
#define MALLOC_PTR_IN_USE_RANGE_TYPE 1

static inline task_t mach_task_self(void) { return 259; }

typedef kern_return_t memory_reader_t(task_t, vm_address_t, vm_size_t, void**);
typedef void vm_range_recorder_t(task_t, void*, unsigned, vm_range_t*, unsigned);

typedef struct {
  unsigned blocks_in_use;
  size_t size_in_use, max_size_in_use, size_allocated;
} malloc_statistics_t;

typedef struct malloc_zone_t malloc_zone_t;

typedef struct {
  kern_return_t (*enumerator)(task_t, void*, unsigned, vm_address_t, memory_reader_t, vm_range_recorder_t);
  size_t (*good_size)(malloc_zone_t*, size_t);
  boolean_t (*check)(malloc_zone_t*);
  void (*print)(malloc_zone_t*, boolean_t);
  void (*log)(malloc_zone_t*, void*);
  void (*force_lock)(malloc_zone_t*);
  void (*force_unlock)(malloc_zone_t*);
  void (*statistics)(malloc_zone_t*, malloc_statistics_t*);
  boolean_t (*zone_locked)(malloc_zone_t*);
  void (*reinit_lock)(malloc_zone_t*);
} malloc_introspection_t;

struct malloc_zone_t {
  size_t (*size)(malloc_zone_t*, const void*);
  void* (*malloc)(malloc_zone_t*, size_t);
  void* (*calloc)(malloc_zone_t*, size_t, size_t);
  void* (*valloc)(malloc_zone_t*, size_t);
  void (*free)(malloc_zone_t*, void*);
  void* (*realloc)(malloc_zone_t*, void*, size_t);
  void (*destroy)(malloc_zone_t*);
  const char* zone_name;
  unsigned (*batch_malloc)(malloc_zone_t*, size_t, void**, unsigned);
  void (*batch_free)(malloc_zone_t*, void**, unsigned);
  malloc_introspection_t* introspect;
  unsigned version;
  void* (*memalign)(malloc_zone_t*, size_t, size_t);
  void (*free_definite_size)(malloc_zone_t*, void*, size_t);
  size_t (*pressure_relief)(malloc_zone_t*, size_t);
  boolean_t (*claimed_address)(malloc_zone_t*, void*);
  void (*try_free_default)(malloc_zone_t*, void*);
};
