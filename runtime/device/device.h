// Where the memory of a rank lies.
//
// A rank asks its device once for each region of the plan and gives all back together; nothing else is allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace weft {

// Memory of one region; freed with the object.
class Region {
 public:
  virtual ~Region() = default;
  char* data() const { return data_; }
  int64_t bytes() const { return bytes_; }

 protected:
  Region(char* data, int64_t bytes) : data_(data), bytes_(bytes) {}

 private:
  char* data_;
  int64_t bytes_;
};

class Device {
 public:
  virtual ~Device() = default;
  // "cpu".
  virtual std::string name() const = 0;
  // Page-aligned memory of zeros. It is touched, so that what is resident is what was planned, from the start. Error:
  // the device has not that much (bytes named).
  virtual absl::StatusOr<std::unique_ptr<Region>> allocate(int64_t bytes) = 0;
  // Says that so many bytes will be allocated by other means. Error: the device has not that much.
  virtual absl::Status claim(int64_t bytes) = 0;
};

std::unique_ptr<Device> cpuDevice();

}  // namespace weft
