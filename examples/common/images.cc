#include "examples/common/images.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "runtime/base/random.h"
#include "runtime/base/status.h"

namespace weft::examples {
namespace {

constexpr int64_t kSide = 28;
constexpr int64_t kClasses = 10;

absl::StatusOr<ImageDataset> openSplit(const std::string& directory, const std::string& split,
                                       const ImageDatasetOptions& options) {
  const auto find = [&](const std::string& name) {
    const std::string path = directory + "/" + split + "-" + name;
    return std::filesystem::exists(path) ? path : path + ".gz";
  };
  return ImageDataset::open(find("images-idx3-ubyte"), find("labels-idx1-ubyte"), options);
}

// Stripes at the class's angle, of a random phase and width, in noise.
absl::StatusOr<ImageDataset> drawn(int64_t count, uint32_t stream, const ImageDatasetOptions& options) {
  const uint64_t seed = options.seed;
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
  return ImageDataset::of(std::move(images), std::move(labels), options);
}

absl::StatusOr<ImageSplits> openSplits(const std::string& directory, const ImageDatasetOptions& options) {
  const std::string usual = absl::StrCat(WEFT_DATA_DIR, "/fashion-mnist");
  const std::string from = directory.empty() && std::filesystem::exists(usual) ? usual : directory;
  if (from.empty()) {
    WEFT_ASSIGN_OR_RETURN(ImageDataset train, drawn(12000, 11, options));
    WEFT_ASSIGN_OR_RETURN(ImageDataset test, drawn(2000, 12, options));
    return ImageSplits{std::move(train), std::move(test), "drawn stripes (--data DIR takes IDX files)"};
  }
  WEFT_ASSIGN_OR_RETURN(ImageDataset train, openSplit(from, "train", options));
  WEFT_ASSIGN_OR_RETURN(ImageDataset test, openSplit(from, "t10k", options));
  return ImageSplits{std::move(train), std::move(test), from};
}

}  // namespace

absl::StatusOr<ImageSplits> openImages(const std::string& directory, const ImageDatasetOptions& options) {
  WEFT_ASSIGN_OR_RETURN(ImageSplits images, openSplits(directory, options));
  std::printf("images: %lld to train, %lld to test, %s\n", static_cast<long long>(images.train.size()),
              static_cast<long long>(images.test.size()), images.source.c_str());
  return images;
}

int64_t stepsOf(double epochs, const ImageDataset& data, int64_t batch) {
  const double steps = epochs * static_cast<double>(data.size()) / static_cast<double>(batch);
  return epochs > 0 ? std::max<int64_t>(1, static_cast<int64_t>(steps)) : 0;
}

absl::StatusOr<double> accuracy(Trainer& trainer, const Program& program, const ImageDataset& data, int64_t batch) {
  std::vector<float> x;
  std::vector<int32_t> y;
  absl::Status read;
  WEFT_ASSIGN_OR_RETURN(const Metrics metrics,
                        trainer.evaluate(program, (data.size() + batch - 1) / batch, [&](int64_t i, Feed& feed) {
                          const int64_t rows = feed.rows(std::min(batch, data.size() - i * batch));
                          x.resize(rows * data.rows() * data.columns());
                          y.resize(rows);
                          read.Update(data.batch(i * batch, rows, x.data(), y.data()));
                          feed.write("x", x);
                          feed.write("y", y);
                        }));
  WEFT_RETURN_IF_ERROR(read);
  return metrics.at("accuracy");
}

}  // namespace weft::examples
