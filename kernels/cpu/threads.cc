#include "kernels/cpu/threads.h"

#include <dlfcn.h>

namespace weft::cpu {

int libraryThreads() {
  using GetThreads = int (*)();
  static const auto get = reinterpret_cast<GetThreads>(dlsym(RTLD_DEFAULT, "omp_get_max_threads"));
  return get == nullptr ? 1 : get();
}

void setLibraryThreads(int threads) {
  using SetThreads = void (*)(int);
  static const auto set = reinterpret_cast<SetThreads>(dlsym(RTLD_DEFAULT, "omp_set_num_threads"));
  if (set != nullptr) {
    set(threads);
  }
}

}  // namespace weft::cpu
