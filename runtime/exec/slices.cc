#include "runtime/exec/slices.h"

#include <cstdint>
#include <cstring>
#include <vector>

#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

// Where the rows of a slice's valid part lie in another array: the offset of its first element and the array's shape.
struct Window {
  std::vector<int64_t> offset;
  std::vector<int64_t> shape;
};

std::vector<int64_t> listOf(const google::protobuf::RepeatedField<int64_t>& numbers) {
  return {numbers.begin(), numbers.end()};
}

// Calls visit(local byte offset, byte offset in the window's array, bytes) for every contiguous row of the slice's
// valid part.
template <typename Visit>
void forEachRow(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const Window& window,
                const Visit& visit) {
  const plan::Slice& slice = tensor.slices(static_cast<int>(rank));
  const int dims = tensor.shape_size();
  const int64_t width = byteSize(dtypeOf(tensor.type()));
  if (dims == 0) {
    visit(0, 0, width);
    return;
  }
  int64_t rows = 1;
  for (int d = 0; d < dims - 1; ++d) {
    rows *= slice.valid(d);
  }
  const int64_t run = slice.valid(dims - 1);
  for (int64_t row = 0; row < (run == 0 ? 0 : rows); ++row) {
    int64_t rest = row;
    int64_t local = 0;
    int64_t other = window.offset[dims - 1];
    int64_t localStride = buffer.shape(dims - 1);
    int64_t otherStride = window.shape[dims - 1];
    for (int d = dims - 2; d >= 0; --d) {
      const int64_t index = rest % slice.valid(d);
      rest /= slice.valid(d);
      local += index * localStride;
      other += (window.offset[d] + index) * otherStride;
      localStride *= buffer.shape(d);
      otherStride *= window.shape[d];
    }
    visit(local * width, other * width, run * width);
  }
}

Window globalWindow(const plan::NamedTensor& tensor, int64_t rank) {
  return {listOf(tensor.slices(static_cast<int>(rank)).offset()), listOf(tensor.shape())};
}

bool hasPad(const plan::Buffer& buffer, const plan::Slice& slice) {
  for (int d = 0; d < buffer.shape_size(); ++d) {
    if (slice.valid(d) != buffer.shape(d)) {
      return true;
    }
  }
  return false;
}

}  // namespace

int64_t globalBytes(const plan::NamedTensor& tensor) {
  int64_t bytes = byteSize(dtypeOf(tensor.type()));
  for (const int64_t size : tensor.shape()) {
    bytes *= size;
  }
  return bytes;
}

int64_t sliceBytes(const plan::NamedTensor& tensor, int64_t rank) {
  int64_t bytes = byteSize(dtypeOf(tensor.type()));
  for (const int64_t size : tensor.slices(static_cast<int>(rank)).valid()) {
    bytes *= size;
  }
  return bytes;
}

static void writeFrom(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const Window& window,
                      const char* from, char* local) {
  if (hasPad(buffer, tensor.slices(static_cast<int>(rank)))) {
    std::memset(local, 0, static_cast<size_t>(buffer.bytes()));
  }
  forEachRow(tensor, buffer, rank, window,
             [&](int64_t to, int64_t at, int64_t bytes) { std::memcpy(local + to, from + at, bytes); });
}

void scatterSlice(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const void* global,
                  char* local) {
  writeFrom(tensor, buffer, rank, globalWindow(tensor, rank), static_cast<const char*>(global), local);
}

void writeLocal(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const void* part,
                char* local) {
  const std::vector<int64_t> valid = listOf(tensor.slices(static_cast<int>(rank)).valid());
  const Window window = {std::vector<int64_t>(valid.size(), 0), valid};
  writeFrom(tensor, buffer, rank, window, static_cast<const char*>(part), local);
}

void gatherSlice(const plan::NamedTensor& tensor, const plan::Buffer& buffer, int64_t rank, const char* local,
                 void* global) {
  forEachRow(tensor, buffer, rank, globalWindow(tensor, rank), [&](int64_t from, int64_t to, int64_t bytes) {
    std::memcpy(static_cast<char*>(global) + to, local + from, bytes);
  });
}

}  // namespace weft
