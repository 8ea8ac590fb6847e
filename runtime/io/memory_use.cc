#include "runtime/io/memory_use.h"

#include <fstream>
#include <string>

namespace weft {

int64_t residentBytes() {
  std::ifstream stream("/proc/self/status");
  for (std::string word; stream >> word;) {
    if (word == "RssAnon:") {
      int64_t kibibytes = 0;
      stream >> kibibytes;
      return kibibytes * 1024;
    }
  }
  return 0;
}

}  // namespace weft
