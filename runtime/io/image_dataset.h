// Labelled images as training data: the IDX files of MNIST and Fashion-MNIST, compressed with gzip or not.
//
// An IDX file is two zero bytes, a type (8 = unsigned bytes, the only one here), the number of dimensions, the sizes as
// big-endian 32-bit numbers, and the elements in row-major order.
//
//   WEFT_ASSIGN_OR_RETURN(ImageDataset data, ImageDataset::open("train-images-idx3-ubyte.gz",
//                                                               "train-labels-idx1-ubyte.gz", {.seed = 1}));
//   data.trainBatch(step, batch, x, y);  // float [batch, 1, rows, columns], int32 [batch]
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace weft {

struct IdxTensor {
  std::vector<int64_t> shape;
  std::vector<uint8_t> values;
};
// Errors: unreadable file; damaged compression; no IDX file, or one of another type; a length that is not what the
// header says, or more than a file of its length can hold. Memory grows with what the file holds, up to what its header
// asks for.
absl::StatusOr<IdxTensor> readIdx(const std::string& path);

struct ImageDatasetOptions {
  uint64_t seed = 0;  // of the shuffle
  // A pixel v of 0..255 becomes (v / 255 - mean) / deviation.
  double mean = 0.0;
  double deviation = 1.0;
};

class ImageDataset {
 public:
  // Errors: those of readIdx; images that have not three dimensions, labels that have not one, or another number of
  // labels than images (both named); a deviation that is not positive, or numbers that are not finite.
  static absl::StatusOr<ImageDataset> open(const std::string& images, const std::string& labels,
                                           const ImageDatasetOptions& options = {});

  // Images [n, rows, columns] and n labels that are in memory already. Errors as of open; sizes that do not go with the
  // number of values.
  static absl::StatusOr<ImageDataset> of(IdxTensor images, IdxTensor labels, const ImageDatasetOptions& options = {});

  int64_t size() const { return images_.shape[0]; }
  int64_t rows() const { return images_.shape[1]; }
  int64_t columns() const { return images_.shape[2]; }
  int64_t classes() const { return classes_; }  // the greatest label and one
  const std::vector<uint8_t>& labels() const { return labels_.values; }

  // Training step `step`: `batch` samples of the shuffled order, from step * batch on.
  void trainBatch(int64_t step, int64_t batch, float* x, int32_t* y) const;
  // Samples first .. first + batch - 1 in the file's order. Error: there are not so many.
  absl::Status batch(int64_t first, int64_t batch, float* x, int32_t* y) const;

 private:
  void copySample(int64_t sample, float* x, int32_t* y) const;

  ImageDatasetOptions options_;
  IdxTensor images_;
  IdxTensor labels_;
  int64_t classes_ = 0;
};

}  // namespace weft
