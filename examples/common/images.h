// Images for the examples that train on some: Fashion-MNIST files, or drawn ones where there are none.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/io/image_dataset.h"
#include "weft/trainer.h"

namespace weft::examples {

struct ImageSplits {
  ImageDataset train;
  ImageDataset test;
  std::string source;  // for people
};

// From a directory with the four IDX files of MNIST or Fashion-MNIST, compressed or not, by their usual names; if it is
// empty from the directory of the build's test data, and without that drawn: ten kinds of stripes in noise. Prints how
// many there are.
absl::StatusOr<ImageSplits> openImages(const std::string& directory, const ImageDatasetOptions& options);

// Training steps of so many passes over the images, at least one unless there is no pass.
int64_t stepsOf(double epochs, const ImageDataset& data, int64_t batch);

// The metric "accuracy" over all images. `program`: forward, with inputs "x" (float pixels) and "y" of `batch` rows.
absl::StatusOr<double> accuracy(Trainer& trainer, const Program& program, const ImageDataset& data, int64_t batch);

}  // namespace weft::examples
