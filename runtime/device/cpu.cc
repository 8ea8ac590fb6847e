// Memory of the machine's processors: anonymous pages.
#include <sys/mman.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/device/device.h"

namespace weft {
namespace {

// AddressSanitizer guards the ends of what comes from the heap, not those of pages.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WEFT_GUARDED_REGIONS
#endif
#endif

#ifdef WEFT_GUARDED_REGIONS
char* takePages(int64_t bytes) {
  constexpr size_t kPage = 4096;
  void* memory = nullptr;
  return posix_memalign(&memory, kPage, bytes) == 0 ? static_cast<char*>(memory) : nullptr;
}
void givePages(char* memory, int64_t /*bytes*/) {
  std::free(memory);
}
#else
char* takePages(int64_t bytes) {
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<char*>(memory);
}
void givePages(char* memory, int64_t bytes) {
  munmap(memory, bytes);
}
#endif

class CpuRegion : public Region {
 public:
  // An empty region: an address that is not null and is never read.
  CpuRegion() : Region(&nothing_, 0) {}
  CpuRegion(char* data, int64_t bytes) : Region(data, bytes) {}
  ~CpuRegion() override {
    if (bytes() > 0) {
      givePages(data(), bytes());
    }
  }

 private:
  alignas(64) char nothing_ = 0;
};

// Bytes that processes can still get before the system ends one of them; INT64_MAX where it does not tell.
int64_t availableBytes() {
  std::ifstream stream("/proc/meminfo");
  int64_t kibibytes = 0;
  bool known = false;
  for (std::string line; std::getline(stream, line);) {
    std::istringstream words(line);
    std::string name;
    int64_t value = 0;
    words >> name >> value;
    if (name == "MemAvailable:" || name == "SwapFree:") {
      kibibytes += value;
      known = true;
    }
  }
  return known ? kibibytes * 1024 : INT64_MAX;
}

class CpuDevice : public Device {
 public:
  std::string name() const override { return "cpu"; }

  absl::Status claim(int64_t bytes) override {
    if (bytes > left_) {
      left_ = availableBytes();  // what this device allocated is touched, so the system has counted it
    }
    if (bytes > left_) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no ", bytes, " bytes of memory on this machine: ", left_, " are available"));
    }
    left_ -= bytes;
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Region>> allocate(int64_t bytes) override {
    if (bytes == 0) {
      return std::make_unique<CpuRegion>();
    }
    // The system would promise more than it has, and end the process when it is touched.
    WEFT_RETURN_IF_ERROR(claim(bytes));
    char* const memory = takePages(bytes);
    if (memory == nullptr) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no ", bytes, " bytes of memory on this machine: ", std::strerror(errno)));
    }
    std::memset(memory, 0, bytes);
    return std::make_unique<CpuRegion>(memory, bytes);
  }

 private:
  int64_t left_ = 0;  // of what was available when the system was asked last
};

}  // namespace

std::unique_ptr<Device> cpuDevice() {
  return std::make_unique<CpuDevice>();
}

}  // namespace weft
