// A small net on 2 ranks: matmul split along its inner dimension, relu by rows, trained with momentum.

#include <cstdio>

#include "examples/common/flags.h"
#include "runtime/base/random.h"
#include "runtime/base/status.h"
#include "weft/weft.h"

namespace weft::examples {
namespace {

constexpr int64_t kBatch = 32;
constexpr int64_t kIn = 16;
constexpr int64_t kOut = 8;

absl::Status run(CommonFlags flags) {
  if (flags.mesh.empty() && flags.devices == 1) {
    flags.devices = 2;
  }
  Graph g;
  const Tensor x = g.input("x", {kBatch, kIn});
  const Tensor target = g.input("target", {kBatch, kOut});
  const Tensor w = g.parameter("w", {kIn, kOut}, Init::normal(0.3));
  const Tensor y = matmul(x, w).named("matmul").shard({{1, 2}, {2, 1}});
  const Tensor z = relu(y).named("relu").shard({{2, 1}});
  const Tensor difference = z - target;
  const Tensor loss = mean(difference * difference);
  WEFT_ASSIGN_OR_RETURN(const Program program,
                        compile(g, loss, optim::Sgd{.lr = 0.2, .momentum = 0.9}, flags.options()));
  printProgram(program);
  absl::Status status;
  if (flags.wrotePlan(program, &status)) {
    return status;
  }
  Trainer trainer(program, flags.trainerOptions());
  // The net learns a hidden matrix.
  std::vector<float> hidden(kIn * kOut);
  for (size_t i = 0; i < hidden.size(); ++i) {
    hidden[i] = randomNormal({7, 1, 0}, i) * 0.3F;
  }
  const auto feed = [&](int64_t step, Feed& inputs) {
    std::vector<float> in(kBatch * kIn);
    std::vector<float> out(kBatch * kOut, 0.0F);
    for (size_t i = 0; i < in.size(); ++i) {
      in[i] = randomNormal({static_cast<uint64_t>(flags.seed), 2, static_cast<uint32_t>(step)}, i);
    }
    for (int64_t r = 0; r < kBatch; ++r) {
      for (int64_t c = 0; c < kOut; ++c) {
        for (int64_t k = 0; k < kIn; ++k) {
          out[r * kOut + c] += in[r * kIn + k] * hidden[k * kOut + c];
        }
        out[r * kOut + c] = std::max(out[r * kOut + c], 0.0F);
      }
    }
    inputs.write("x", in);
    inputs.write("target", out);
  };
  return flags.train(trainer, [&] {
    WEFT_RETURN_IF_ERROR(trainer.fit(flags.steps, feed));
    std::printf("loss: %s\n", lossesText(trainer.losses()).c_str());
    return absl::OkStatus();
  });
}

}  // namespace
}  // namespace weft::examples

int main(int argc, char** argv) {
  weft::examples::CommonFlags common;
  common.steps = 60;
  weft::examples::Flags flags;
  common.addTo(flags);
  return weft::examples::runExample(argc, argv, common, flags, [&] { return weft::examples::run(common); });
}
