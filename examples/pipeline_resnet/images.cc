#include "examples/pipeline_resnet/images.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/base/random.h"
#include "runtime/base/status.h"

namespace weft::examples {
namespace {

constexpr int64_t kSide = 28;
constexpr int64_t kClasses = 10;

// Of Fashion-MNIST's training pixels, in units of 255.
constexpr double kMean = 0.286;
constexpr double kDeviation = 0.353;

absl::StatusOr<ImageDataset> openSplit(const std::string& directory, const std::string& split, uint64_t seed) {
  const auto find = [&](const std::string& name) {
    const std::string path = directory + "/" + split + "-" + name;
    return std::filesystem::exists(path) ? path : path + ".gz";
  };
  ImageDatasetOptions options;
  options.seed = seed;
  options.mean = kMean;
  options.deviation = kDeviation;
  return ImageDataset::open(find("images-idx3-ubyte"), find("labels-idx1-ubyte"), options);
}

// Stripes at the class's angle, of a random phase and width, in noise.
absl::StatusOr<ImageDataset> drawn(int64_t count, uint64_t seed, uint32_t stream) {
  IdxTensor images{{count, kSide, kSide}, std::vector<uint8_t>(count * kSide * kSide)};
  IdxTensor labels{{count}, std::vector<uint8_t>(count)};
  for (int64_t n = 0; n < count; ++n) {
    labels.values[n] = static_cast<uint8_t>(n % kClasses);
    const double angle = M_PI * static_cast<double>(n % kClasses) / kClasses;
    const double phase = 3 * randomNormal({seed, stream, 0}, 2 * n);
    const double width = 0.9 + 0.1 * std::tanh(randomNormal({seed, stream, 0}, 2 * n + 1));
    for (int64_t i = 0; i < kSide * kSide; ++i) {
      const double along = std::cos(angle) * static_cast<double>(i % kSide) + std::sin(angle) * (i / kSide);
      const double noise = 40 * randomNormal({seed, stream, 1}, n * kSide * kSide + i);
      images.values[n * kSide * kSide + i] =
          static_cast<uint8_t>(std::clamp(128 + 70 * std::sin(width * along + phase) + noise, 0.0, 255.0));
    }
  }
  ImageDatasetOptions options;
  options.seed = seed;
  options.mean = 0.5;
  options.deviation = 0.25;
  return ImageDataset::of(std::move(images), std::move(labels), options);
}

}  // namespace

absl::StatusOr<ImageSplits> openImages(const std::string& directory, uint64_t seed) {
  const std::string usual = absl::StrCat(WEFT_DATA_DIR, "/fashion-mnist");
  const std::string from = directory.empty() && std::filesystem::exists(usual) ? usual : directory;
  if (from.empty()) {
    WEFT_ASSIGN_OR_RETURN(ImageDataset train, drawn(12000, seed, 11));
    WEFT_ASSIGN_OR_RETURN(ImageDataset test, drawn(2000, seed, 12));
    return ImageSplits{std::move(train), std::move(test), "drawn stripes (--data DIR takes IDX files)"};
  }
  WEFT_ASSIGN_OR_RETURN(ImageDataset train, openSplit(from, "train", seed));
  WEFT_ASSIGN_OR_RETURN(ImageDataset test, openSplit(from, "t10k", seed));
  return ImageSplits{std::move(train), std::move(test), from};
}

}  // namespace weft::examples
