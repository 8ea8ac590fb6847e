#include "runtime/comm/box_copy.h"

#include <cstring>

namespace weft {

BoxCopy::BoxCopy(const Box& box, int64_t elementBytes) : run_(elementBytes) {
  int64_t sourceStride = elementBytes;
  int64_t targetStride = elementBytes;
  bool contiguous = true;  // so far from the innermost dimension
  for (size_t d = box.size.size(); d-- > 0;) {
    source_ += box.sourceOffset[d] * sourceStride;
    target_ += box.targetOffset[d] * targetStride;
    if (contiguous) {
      run_ *= box.size[d];
    } else {
      dims_.insert(dims_.begin(), {box.size[d], sourceStride, targetStride});
    }
    contiguous = contiguous && box.size[d] == box.sourceShape[d] && box.size[d] == box.targetShape[d];
    sourceStride *= box.sourceShape[d];
    targetStride *= box.targetShape[d];
  }
}

void BoxCopy::copyDim(size_t dim, const char* source, char* target) const {
  if (dim == dims_.size()) {
    std::memcpy(target, source, run_);
    return;
  }
  for (int64_t i = 0; i < dims_[dim].count; ++i) {
    copyDim(dim + 1, source + i * dims_[dim].sourceStride, target + i * dims_[dim].targetStride);
  }
}

}  // namespace weft
