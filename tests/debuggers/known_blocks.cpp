// Has blocks in known states, which gdb_test.py asks gdb about, and stops at `all_are_there`.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <semaphore>
#include <thread>

extern "C" {
void* volatile in_use;
void* volatile freed;
void* volatile beside_in_use;  ///< the block behind one that is alone in its span
void* volatile longer;         ///< of a class with a tag for each block
void* volatile page_run;
void* volatile page_run_freed;
void* volatile large;
void* volatile large_freed;
void* volatile aligned;
void* volatile of_no_bytes;
void* volatile by_new;
void* volatile of_worker;
void* volatile freed_by_worker;
void* volatile of_ended;
void* of_more_classes[4];
void* sent[30];  ///< freed by the worker: more than a batch
void* many[4000];

[[gnu::noinline, gnu::used]] void* function_of_program() { return in_use; }
[[gnu::noinline, gnu::used]] void all_are_there() { asm volatile("" ::: "memory"); }
}

namespace {

std::binary_semaphore has_worked{0}, may_end{0};

[[gnu::noinline]] void work() {
  of_worker = std::malloc(100);
  std::free(freed_by_worker);
  for (void* p : sent) std::free(p);
  has_worked.release();
  may_end.acquire();
}

}  // namespace

int main() {
  char on_stack[64];
  std::snprintf(on_stack, sizeof on_stack, "here");
  in_use = std::malloc(100);
  std::memset(in_use, 7, 100);
  freed = std::malloc(300);
  beside_in_use = static_cast<char*>(std::malloc(3000)) + 3072;
  longer = std::malloc(5000);
  page_run = std::malloc(100000);
  large = std::malloc(1 << 20);
  large_freed = std::malloc(3 << 20);
  aligned = std::aligned_alloc(64, 640);
  of_no_bytes = std::malloc(0);
  by_new = ::operator new(48);
  freed_by_worker = std::malloc(700);
  for (void*& p : sent) p = std::malloc(600);
  for (std::size_t i = 0; i < 4; ++i) of_more_classes[i] = std::malloc(1200 + 300 * i);
  for (void*& p : many) p = std::malloc(200);
  for (int i = 0; i < 4000; i += 2) std::free(many[i]);
  // Threads keep such blocks once they ask for them again.
  for (int i = 0; i < 20; ++i) {
    page_run_freed = std::malloc(70000);
    std::free(page_run_freed);
  }
  std::free(large_freed);
  std::thread worker(work);
  has_worked.acquire();
  std::thread([] { of_ended = std::malloc(900); }).join();
  std::free(freed);  // last: what makes a thread would take it
  all_are_there();
  may_end.release();
  worker.join();
  return on_stack[0] == 'h' ? 0 : 1;
}
