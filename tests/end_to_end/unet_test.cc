// The U-Net of the examples trains alike on one rank, with its channels split, in pipeline stages and under mode auto.

#include <gtest/gtest.h>

#include <cmath>

#include "examples/unet/model.h"
#include "runtime/base/random.h"
#include "weft/weft.h"

namespace weft {
namespace {

constexpr int64_t kSteps = 4;

examples::UnetConfig smallUnet(int64_t stages) {
  return {.batch = 4, .channels = 2, .rows = 10, .columns = 7, .width = 4, .groups = 2, .stages = stages};
}

std::vector<double> lossesOf(const CompileOptions& options, const nn::Parallel& parallel, int64_t stages) {
  Graph g;
  const examples::UnetConfig config = smallUnet(stages);
  const examples::UnetModel model = examples::buildUnet(g, config);
  if (parallel.any()) {
    g.shard(examples::unetSharding(parallel));
  }
  const absl::StatusOr<Program> program = compile(g, model.loss, optim::AdamW{.lr = 1e-2}, options);
  if (!program.ok()) {
    ADD_FAILURE() << program.status();
    return {};
  }
  Trainer trainer(*program, {.progress = false});
  const absl::Status trained = trainer.fit(kSteps, [&](int64_t step, Feed& feed) {
    for (const char* name : {"x", "noise"}) {
      std::vector<float> values(4 * 2 * 10 * 7);
      for (size_t i = 0; i < values.size(); ++i) {
        values[i] =
            static_cast<float>(randomNormal({7, static_cast<uint32_t>(name[0]), static_cast<uint32_t>(step)}, i));
      }
      feed.write(name, values);
    }
  });
  EXPECT_TRUE(trained.ok()) << trained;
  return trainer.losses();
}

TEST(Unet, TrainsAlikeOnEveryMesh) {
  const std::vector<double> expected = lossesOf({}, {}, 1);
  ASSERT_EQ(expected.size(), static_cast<size_t>(kSteps));
  EXPECT_LT(expected.back(), expected.front());
  const auto expectAlike = [&](const std::vector<double>& losses) {
    ASSERT_EQ(losses.size(), expected.size());
    for (size_t i = 0; i < losses.size(); ++i) {
      EXPECT_NEAR(losses[i], expected[i], 1e-4 * expected[i]) << "step " << i;
    }
  };
  CompileOptions options;
  options.mesh = "dp=2,tp=2";
  expectAlike(lossesOf(options, {.data = "dp", .model = "tp"}, 1));
  options.zero = 3;
  expectAlike(lossesOf(options, {}, 1));
  options = {};
  options.micro = 2;
  expectAlike(lossesOf(options, {}, 3));
  options = {};
  options.mode = Mode::kAuto;
  options.devices = 4;
  expectAlike(lossesOf(options, {}, 1));
}

}  // namespace
}  // namespace weft
