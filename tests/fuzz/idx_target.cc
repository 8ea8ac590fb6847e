// Images and labels: IDX files, compressed or not. One input serves as both.
#include "runtime/io/image_dataset.h"
#include "tests/fuzz/gzip.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"

namespace weft::fuzz {
namespace {

// Of a compressed input that is mutated inside.
constexpr size_t kMostBytes = size_t{1} << 20;
constexpr int64_t kMostPixels = int64_t{1} << 16;

Outcome run(const std::string& bytes) {
  const MemoryFile file(bytes);
  const absl::StatusOr<IdxTensor> tensor = readIdx(file.path());
  ImageDataset::open(file.path(), file.path()).IgnoreError();
  if (!tensor.ok()) {
    return Outcome::kRefused;
  }
  int64_t elements = 1;
  for (const int64_t size : tensor->shape) {
    elements *= size;
  }
  require(elements == static_cast<int64_t>(tensor->values.size()), "an IDX file has another number of elements");
  if (tensor->shape.size() == 3 && elements <= kMostPixels && tensor->shape[0] <= kMostPixels) {
    const IdxTensor labels = {{tensor->shape[0]}, std::vector<uint8_t>(tensor->shape[0], 7)};
    const absl::StatusOr<ImageDataset> data = ImageDataset::of(*tensor, labels);
    if (data.ok()) {
      std::vector<float> x(2 * data->rows() * data->columns());
      std::vector<int32_t> y(2);
      data->trainBatch(3, 2, x.data(), y.data());
      data->batch(0, 2, x.data(), y.data()).IgnoreError();
    }
  }
  return Outcome::kAccepted;
}

std::string mutate(const std::string& bytes, Mutator& mutator) {
  const std::optional<std::string> inside = decompressed(bytes, kMostBytes);
  if (!inside.has_value() || mutator.chance(10)) {
    return mutator.chance(5) ? compressed(bytes) : mutator.raw(bytes);
  }
  std::string changed = mutator.raw(*inside);
  if (changed.size() > 4 && mutator.chance(30)) {
    // A size at which arithmetic breaks.
    const uint64_t size = static_cast<uint64_t>(mutator.edge(4));
    const size_t at = 4 + 4 * mutator.below((changed.size() - 4) / 4);
    for (size_t i = 0; i < 4 && at + i < changed.size(); ++i) {
      changed[at + i] = static_cast<char>(size >> (24 - 8 * i));
    }
  }
  return mutator.chance(5) ? changed : compressed(changed);
}

}  // namespace

Target idxTarget() {
  return {"idx", run, mutate, {}};
}

}  // namespace weft::fuzz
