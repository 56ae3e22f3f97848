// The least program: it prints one line, as everybody's first one does, and what it cost: resident
// bytes, peak bytes, and the bytes of mappings that a system which gives huge pages unasked may
// back with them at the first touch.
#include <stdio.h>
#include <string.h>

#include "../support/resident.h"

static size_t eligible_for_huge_pages(void) {
  const size_t huge = (size_t)2 << 20;
  if (access("/sys/kernel/mm/transparent_hugepage", F_OK) != 0) return 0;  // a kernel without them
  FILE* const f = fopen("/proc/self/smaps", "r");
  if (f == NULL) return (size_t)-1;
  size_t sum = 0;
  size_t bytes = 0;
  char line[512];
  while (fgets(line, sizeof line, f) != NULL) {
    size_t begin, end, inode;
    char access[5];
    if (sscanf(line, "%zx-%zx %4s %*x %*s %zu", &begin, &end, access, &inode) == 4) {
      bytes = inode == 0 && strncmp(access, "rw", 2) == 0 ? end - begin : 0;
    } else if (strncmp(line, "VmFlags:", 8) == 0 && bytes >= huge && strstr(line, " nh") == NULL) {
      sum += bytes;
    }
  }
  fclose(f);
  return sum;
}

int main(void) {
  puts("hello, world");
  const size_t resident = resident_bytes();
  const size_t peak = peak_resident_bytes();
  printf("%zu %zu %zu\n", resident, peak, eligible_for_huge_pages());
  return 0;
}
