// Trains a small U-Net to find the noise in images, and compares it with the best that sees each pixel alone.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "examples/common/flags.h"
#include "examples/common/images.h"
#include "examples/unet/model.h"
#include "runtime/base/random.h"
#include "runtime/base/status.h"

namespace weft::examples {
namespace {

// Of Fashion-MNIST's training pixels, in units of 255.
constexpr double kMean = 0.286;
constexpr double kDeviation = 0.353;

struct UnetFlags {
  CommonFlags common;
  std::string data;
  UnetConfig model;
  double noise = 0.5;
  double lr = 2e-3;
  bool tensorParallel = false;

  void addTo(Flags& flags) {
    common.steps = 200;
    common.addTo(flags);
    flags.text("data", &data, "directory of Fashion-MNIST's four IDX files; default: the test data, else drawn images");
    flags.integer("batch", &model.batch, "images of one step", kSize);
    flags.integer("width", &model.width, "channels of the first level, a multiple of --groups", kSize);
    flags.integer("groups", &model.groups, "groups of the norms", kSize);
    flags.integer("stages", &model.stages, "pipeline stages, 1 to 3; each has the ranks of --mesh or --devices",
                  {1, 3});
    flags.real("noise", &noise, "deviation of the noise; that of the pixels is 1", {0.01, 10});
    flags.real("lr", &lr, "learning rate of AdamW");
    flags.toggle("tensor-parallel", &tensorParallel, "channels split over mesh axis tp");
  }
};

// The least mean square that a function of the noisy pixel alone can reach: that of the noise's mean, given the pixel,
// whose values have these shares.
double leastAlone(const std::array<double, 256>& shares, double noise) {
  constexpr double kStep = 0.01;
  const auto pixel = [](int v) { return (v / 255.0 - kMean) / kDeviation; };
  double total = 0;
  for (double x = pixel(0) - 6 * noise; x < pixel(255) + 6 * noise; x += kStep) {
    double weight = 0;
    double first = 0;
    double second = 0;
    for (int v = 0; v < 256; ++v) {
      const double found = x - pixel(v);
      const double likely = shares[v] * std::exp(-0.5 * found * found / (noise * noise));
      weight += likely;
      first += likely * found;
      second += likely * found * found;
    }
    total += weight > 0 ? second - first * first / weight : 0;
  }
  return total * kStep / (noise * std::sqrt(2 * M_PI));
}

std::array<double, 256> sharesOf(const std::vector<float>& pixels) {
  std::array<double, 256> shares = {};
  for (const float pixel : pixels) {
    const double value = std::round((pixel * kDeviation + kMean) * 255);
    shares[static_cast<size_t>(std::clamp(value, 0.0, 255.0))] += 1.0 / static_cast<double>(pixels.size());
  }
  return shares;
}

// Images and noise of one step; what is drawn depends on (seed, stream, step) and the place alone.
class Batches {
 public:
  Batches(const UnetFlags& flags, size_t elements)
      : flags_(flags), x_(elements), noise_(elements), labels_(flags.model.batch) {}

  void train(const ImageDataset& images, int64_t step) {
    images.trainBatch(step, flags_.model.batch, x_.data(), labels_.data());
    addNoise(0, step);
  }
  absl::Status test(const ImageDataset& images, int64_t batch) {
    WEFT_RETURN_IF_ERROR(images.batch(batch * flags_.model.batch, flags_.model.batch, x_.data(), labels_.data()));
    addNoise(1, batch);
    return absl::OkStatus();
  }
  void feed(Feed& feed) const {
    feed.write("x", x_);
    feed.write("noise", noise_);
  }
  const std::vector<float>& images() const { return x_; }

 private:
  void addNoise(uint32_t stream, int64_t step) {
    const auto seed = static_cast<uint64_t>(flags_.common.seed);
    for (size_t i = 0; i < x_.size(); ++i) {
      noise_[i] = static_cast<float>(flags_.noise * randomNormal({seed, 21 + stream, static_cast<uint32_t>(step)}, i));
      x_[i] += noise_[i];
    }
  }

  const UnetFlags& flags_;
  std::vector<float> x_;
  std::vector<float> noise_;
  std::vector<int32_t> labels_;
};

absl::Status train(const UnetFlags& flags, const ImageSplits& images, const Program& program,
                   const Program& evaluation) {
  const auto elements = static_cast<size_t>(flags.model.batch * images.train.rows() * images.train.columns());
  Batches batches(flags, elements);
  std::vector<float> pixels(elements);
  std::vector<int32_t> labels(flags.model.batch);
  images.train.trainBatch(0, flags.model.batch, pixels.data(), labels.data());
  Trainer trainer(program, flags.common.trainerOptions());
  return flags.common.train(trainer, [&]() -> absl::Status {
    WEFT_RETURN_IF_ERROR(trainer.fit(flags.common.steps, [&](int64_t step, Feed& feed) {
      batches.train(images.train, step);
      batches.feed(feed);
    }));
    std::printf("training loss: %s\n", lossesText(trainer.losses()).c_str());
    absl::Status read;
    const int64_t count = std::min<int64_t>(images.test.size() / flags.model.batch, 10);
    WEFT_ASSIGN_OR_RETURN(const Metrics metrics, trainer.evaluate(evaluation, count, [&](int64_t batch, Feed& feed) {
      read.Update(batches.test(images.test, batch));
      batches.feed(feed);
    }));
    WEFT_RETURN_IF_ERROR(read);
    std::printf("test loss after %lld steps: %.4f; what sees each pixel alone reaches at best %.4f\n",
                static_cast<long long>(trainer.step()), metrics.at("loss"), leastAlone(sharesOf(pixels), flags.noise));
    return absl::OkStatus();
  });
}

absl::Status run(const UnetFlags& flags) {
  WEFT_ASSIGN_OR_RETURN(
      const ImageSplits images,
      openImages(flags.data,
                 {.seed = static_cast<uint64_t>(flags.common.seed), .mean = kMean, .deviation = kDeviation}));
  UnetConfig config = flags.model;
  config.rows = images.train.rows();
  config.columns = images.train.columns();
  const CompileOptions options = flags.common.options();
  Graph graph;
  const UnetModel model = buildUnet(graph, config);
  if (flags.tensorParallel) {
    graph.shard(unetSharding(flags.common.parallel(false)));
  }
  WEFT_ASSIGN_OR_RETURN(const Program program, compile(graph, model.loss, optim::AdamW{.lr = flags.lr}, options));
  printProgram(program);
  absl::Status status;
  if (flags.common.wrotePlan(program, &status)) {
    return status;
  }
  Graph evaluationGraph;
  const UnetModel evaluated = buildUnet(evaluationGraph, config);
  metric("loss", square(evaluated.found - evaluated.noise));
  WEFT_ASSIGN_OR_RETURN(const Program evaluation,
                        compileForward(evaluationGraph, Tensor(), forwardOptions(program, options)));
  return train(flags, images, program, evaluation);
}

}  // namespace
}  // namespace weft::examples

int main(int argc, char** argv) {
  weft::examples::UnetFlags values;
  weft::examples::Flags flags;
  values.addTo(flags);
  return weft::examples::runExample(argc, argv, values.common, flags, [&] { return weft::examples::run(values); });
}
