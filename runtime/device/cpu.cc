// Memory of the machine's processors: anonymous pages.
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/device/device.h"

namespace weft {
namespace {

class CpuRegion : public Region {
 public:
  // Of no bytes: an address that is valid and of no use.
  CpuRegion() : Region(&nothing_, 0) {}
  CpuRegion(char* data, int64_t bytes) : Region(data, bytes) {}
  ~CpuRegion() override {
    if (bytes() > 0) {
      munmap(data(), bytes());
    }
  }

 private:
  alignas(64) char nothing_ = 0;
};

class CpuDevice : public Device {
 public:
  std::string name() const override { return "cpu"; }

  absl::StatusOr<std::unique_ptr<Region>> allocate(int64_t bytes) override {
    if (bytes == 0) {
      return std::make_unique<CpuRegion>();
    }
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      return absl::ResourceExhaustedError(
          absl::StrCat("no ", bytes, " bytes of memory on this machine: ", std::strerror(errno)));
    }
    std::memset(memory, 0, bytes);
    return std::make_unique<CpuRegion>(static_cast<char*>(memory), bytes);
  }
};

}  // namespace

std::unique_ptr<Device> cpuDevice() {
  return std::make_unique<CpuDevice>();
}

}  // namespace weft
