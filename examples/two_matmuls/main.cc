// Z = (X W) V on 4 ranks: X split by rows, V by columns. The compiler finds what must move in between.

#include <cmath>
#include <cstdio>

#include "examples/common/flags.h"
#include "runtime/base/random.h"
#include "runtime/base/status.h"
#include "weft/weft.h"

namespace weft::examples {
namespace {

constexpr int64_t kRows = 8;
constexpr int64_t kInner = 16;
constexpr int64_t kColumns = 12;

std::vector<float> numbers(int64_t count, uint32_t key) {
  std::vector<float> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] = randomNormal({1, key, 0}, i);
  }
  return values;
}

absl::StatusOr<std::vector<float>> compute(const CommonFlags& flags, const CompileOptions& options, bool sharded) {
  Graph g;
  const Tensor x = g.input("x", {kRows, kInner}, kF32, {.batchDim = -1, .layout = ""});
  const Tensor w = g.input("w", {kInner, kInner}, kF32, {.batchDim = -1, .layout = ""});
  const Tensor v = g.input("v", {kInner, kColumns}, kF32, {.batchDim = -1, .layout = ""});
  Tensor y = matmul(x, w).named("y");
  Tensor z = matmul(y, v).named("z");
  if (sharded) {
    y.shard({{4, 1}, {1, 1}});
    z.shard({{1, 1}, {1, 4}});
  }
  g.output("z", z);
  WEFT_ASSIGN_OR_RETURN(const Program program, compileForward(g, Tensor(), options));
  absl::Status status;
  if (sharded) {
    printProgram(program);
    if (flags.wrotePlan(program, &status)) {
      WEFT_RETURN_IF_ERROR(status);
    }
    for (const plan::Function& function : program.plan.functions()) {
      for (const plan::Instruction& instruction : function.instructions()) {
        if (instruction.has_collective()) {
          std::printf("  %s: %s\n", instruction.label().c_str(), instruction.collective().reason().c_str());
        }
      }
    }
  }
  const KernelRegistry kernels = cpuKernels();
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor, Executor::create(program.plan, kernels));
  Feed feed(*executor);
  feed.write("x", numbers(kRows * kInner, 1));
  feed.write("w", numbers(kInner * kInner, 2));
  feed.write("v", numbers(kInner * kColumns, 3));
  WEFT_RETURN_IF_ERROR(feed.status());
  WEFT_RETURN_IF_ERROR(executor->runStep());
  WEFT_ASSIGN_OR_RETURN(const std::vector<char> bytes, executor->readTensor("z"));
  const auto* result = reinterpret_cast<const float*>(bytes.data());
  return std::vector<float>(result, result + kRows * kColumns);
}

absl::Status run(CommonFlags flags) {
  if (flags.mesh.empty() && flags.devices == 1) {
    flags.devices = 4;
  }
  WEFT_ASSIGN_OR_RETURN(const std::vector<float> split, compute(flags, flags.options(), true));
  WEFT_ASSIGN_OR_RETURN(const std::vector<float> whole, compute(flags, CompileOptions(), false));
  float worst = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    worst = std::max(worst, std::abs(split[i] - whole[i]));
  }
  std::printf("largest difference from one device: %g\n", worst);
  // Sums of 16 products of standard normal numbers: rounding is far below this.
  return worst < 1e-4F ? absl::OkStatus() : absl::InternalError("the ranks disagree with one device");
}

}  // namespace
}  // namespace weft::examples

int main(int argc, char** argv) {
  weft::examples::CommonFlags common;
  weft::examples::Flags flags;
  common.addCompilingTo(flags);
  return weft::examples::runExample(argc, argv, common, flags, [&] { return weft::examples::run(common); });
}
