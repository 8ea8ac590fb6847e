// The images of the example: Fashion-MNIST files, or drawn ones where there are none.
#pragma once

#include <string>

#include "runtime/io/image_dataset.h"

namespace weft::examples {

struct ImageSplits {
  ImageDataset train;
  ImageDataset test;
  std::string source;  // for people
};

// From a directory with the four IDX files of MNIST or Fashion-MNIST, compressed or not, by their usual names; if it is
// empty from the directory of the build's test data, and without that drawn: ten kinds of stripes in noise.
absl::StatusOr<ImageSplits> openImages(const std::string& directory, uint64_t seed);

}  // namespace weft::examples
