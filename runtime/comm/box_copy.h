// Copies a box of one array in memory into another array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

// A box of a source array and its place in a target array, both row-major; everything in elements.
struct Box {
  std::vector<int64_t> sourceShape;
  std::vector<int64_t> targetShape;
  std::vector<int64_t> sourceOffset;
  std::vector<int64_t> targetOffset;
  std::vector<int64_t> size;
};

// Prepared once; copying allocates nothing.
class BoxCopy {
 public:
  // `bytes` in a row, such as a whole tensor.
  explicit BoxCopy(int64_t bytes) : run_(bytes) {}
  BoxCopy(const Box& box, int64_t elementBytes);

  void copy(const char* source, char* target) const { copyDim(0, source + source_, target + target_); }

 private:
  struct Dim {
    int64_t count = 1;
    int64_t sourceStride = 0;  // bytes
    int64_t targetStride = 0;
  };
  void copyDim(size_t dim, const char* source, char* target) const;

  std::vector<Dim> dims_;  // outer ones; the inner are one run
  int64_t run_ = 0;        // bytes
  int64_t source_ = 0;     // bytes to the first element
  int64_t target_ = 0;
};

}  // namespace weft
