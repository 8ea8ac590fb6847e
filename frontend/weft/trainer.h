// Runs a compiled training program on ranks in this process.
//
//   weft::Trainer trainer(*program, {.threadsPerRank = 1});
//   trainer.fit(300, [&](int64_t step, weft::Feed& feed) { feed.write("x", x); feed.write("y", y); });
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/exec/executor.h"
#include "runtime/io/parameters.h"
#include "weft/compile.h"

namespace weft {

// Writes the inputs of a step.
class Feed {
 public:
  explicit Feed(Executor& executor) : executor_(executor) {}
  // The whole tensor, row-major; each rank gets its slice. The first error is kept.
  template <typename T>
  void write(const std::string& name, const std::vector<T>& data) {
    if (status_.ok()) {
      status_ = executor_.writeTensor(name, data.data(), data.size() * sizeof(T));
    }
  }
  // Rows `first` .. `first + rows - 1` of a tensor along its first dimension, row-major, to `out`.
  template <typename T>
  using FillRows = std::function<void(int64_t first, int64_t rows, T* out)>;
  // The same tensor row by row: asks for the rows that each rank holds and no others. Where a tensor is split along
  // another dimension, it asks for all rows at once.
  template <typename T>
  void writeRows(const std::string& name, const FillRows<T>& fill) {
    write(name, sizeof(T),
          [&](int64_t first, int64_t rows, char* out) { fill(first, rows, reinterpret_cast<T*>(out)); });
  }
  const absl::Status& status() const { return status_; }

 private:
  void write(const std::string& name, size_t elementBytes, const FillRows<char>& fill);
  absl::Status writeParts(const plan::NamedTensor& tensor, const FillRows<char>& fill);

  Executor& executor_;
  absl::Status status_;
  std::vector<char> part_;
};

struct TrainerOptions {
  int threadsPerRank = 0;  // 0: the ranks share the cores
  bool profile = false;
  std::chrono::milliseconds timeout{0};  // the longest a rank waits for others; 0: for ever
  bool progress = true;                  // a line that moves on a terminal, else a line every `printEvery` steps
  int64_t printEvery = 20;
};

using FeedFunction = std::function<void(int64_t step, Feed& feed)>;

class Trainer {
 public:
  // Errors are kept in status(): a plan the runtime refuses.
  explicit Trainer(const Program& program, const TrainerOptions& options = {});
  ~Trainer();

  const absl::Status& status() const { return status_; }
  // Parameters from a safetensors file instead of the initial values; with Saved::kAll also state (running statistics
  // of batch norm, the optimizer's), to go on training or to evaluate.
  absl::Status load(const std::string& path, Saved what = Saved::kParameters);
  absl::Status save(const std::string& path, Saved what = Saved::kParameters) const;

  // Runs `steps` steps; step numbers go on from the last call. Losses are appended to losses().
  absl::Status fit(int64_t steps, const FeedFunction& feed);
  const std::vector<double>& losses() const { return losses_; }

  // Runs a forward program over this trainer's parameters and returns the mean of its output "loss" over the batches.
  absl::StatusOr<double> evaluate(const Program& program, int64_t batches, const FeedFunction& feed);
  // The forward program's executor over this trainer's parameters and state, made on first use: for outputs other than
  // the loss. What the training program lacks gets its initial value then. The program must outlive the trainer.
  absl::StatusOr<Executor*> forward(const Program& program);

  Executor& executor() { return *executor_; }

 private:
  void report(int64_t done, int64_t steps, double seconds) const;

  TrainerOptions options_;
  absl::Status status_;
  std::unique_ptr<KernelRegistry> kernels_;
  std::unique_ptr<Executor> executor_;
  std::vector<std::pair<const Program*, std::unique_ptr<Executor>>> forward_;
  std::vector<double> losses_;
  int64_t step_ = 0;
};

}  // namespace weft
