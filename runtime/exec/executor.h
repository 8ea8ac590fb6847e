// Runs a plan on CPU ranks that are threads of this process.
//
// An Executor owns the ranks' memory (allocated once, by the plan's regions), one thread per rank that lives as long as
// it, and the kernels, each made by the thread that runs it. `runInit` makes the first values of parameters and state;
// `runStep` runs one training step. Inputs are written before a step, outputs read after it, by name and in global
// shapes: the slices in the plan say which rank holds what.
//
// Several programs over one parameter store (train, evaluate, generate): create the second with `options.store` = the
// first; its parameters and state of the same name live in the first's memory. The first must outlive it.
//
// Errors. The first failing rank stops all others; the error names rank, operator, kernel and the user's source line.
// After an error only reading and destruction are safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

class Executor;

struct ExecutorOptions {
  int threadsPerRank = 0;     // 0: the ranks share the cores, at least one each
  Executor* store = nullptr;  // program whose parameters and state this one uses
  bool profile = false;       // record the time of every instruction
};

class Executor {
 public:
  // Errors: an unknown kernel, shapes a kernel refuses, a workspace too small, a parameter the store holds otherwise.
  static absl::StatusOr<std::unique_ptr<Executor>> create(plan::Plan plan, const KernelRegistry& kernels,
                                                          const ExecutorOptions& options = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  absl::Status runInit();
  absl::Status runStep();

  // The whole tensor, row-major, without pads; `bytes` must be its size. Unknown names list the known ones.
  absl::Status writeTensor(const std::string& name, const void* data, size_t bytes);
  absl::StatusOr<std::vector<char>> readTensor(const std::string& name) const;
  // A scalar of any numeric type as a number.
  absl::StatusOr<double> readScalar(const std::string& name) const;

  const plan::Plan& plan() const;
  const plan::NamedTensor* findTensor(const std::string& name) const;
  // Memory of a rank's named tensor.
  void* rankBuffer(const plan::NamedTensor& tensor, int64_t rank) const;
  // Bytes of all regions of all ranks that this executor allocated.
  int64_t allocatedBytes() const;

  // Chrome trace (chrome://tracing, Perfetto) of the last steps: one row per rank. Needs options.profile.
  absl::Status writeTrace(const std::string& path) const;

 private:
  struct Impl;
  explicit Executor(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace weft
