// Runs a compiled training program on ranks in this process.
//
//   weft::Trainer trainer(*program, {.threadsPerRank = 1});
//   trainer.fit(300, [&](int64_t step, weft::Feed& feed) { feed.write("x", x); feed.write("y", y); });
//
// A run that may be interrupted (Ctrl-C, a batch system) says so with a StopRequest; see runtime/base/stop_request.h.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "runtime/base/stop_request.h"
#include "runtime/exec/executor.h"
#include "runtime/io/parameters.h"
#include "runtime/io/weights.h"
#include "weft/compile.h"

namespace weft {

// Writes the inputs of a step: all of them in every step, but for those that stay (Trainer::keepInput).
class Feed {
 public:
  // All rows of the batch are real until rows() says otherwise.
  explicit Feed(Executor& executor);
  // The batch of an evaluation has so many rows, from 1 to all that the program takes; returns `count`. What is written
  // after this may have as many rows alone, in dimension 0, where all are those of the batch: those behind become
  // copies of the last, and count in no metric. Errors: a number out of range; a training program, whose loss would
  // count the copies; a program without metrics (weft/metrics.h).
  int64_t rows(int64_t count);
  // The whole tensor, or the rows that rows() said, row-major; each rank gets its slice. The first error is kept.
  template <typename T>
  void write(const std::string& name, const std::vector<T>& data) {
    writeBytes(name, reinterpret_cast<const char*>(data.data()), data.size() * sizeof(T));
  }
  // Rows `first` .. `first + rows - 1` of a tensor along its first dimension, row-major, to `out`.
  template <typename T>
  using FillRows = std::function<void(int64_t first, int64_t rows, T* out)>;
  // The same tensor row by row: asks for the rows that each rank holds and no others, and of a batch for those that
  // rows() said. Where a tensor is split along another dimension, it asks for all rows at once.
  template <typename T>
  void writeRows(const std::string& name, const FillRows<T>& fill) {
    write(name, sizeof(T),
          [&](int64_t first, int64_t rows, char* out) { fill(first, rows, reinterpret_cast<T*>(out)); });
  }
  // The learning rate of this step and those after, instead of the optimizer's; for schedules. Groups have their factor
  // of it. It is not saved: after Trainer::load the optimizer's holds until this is called again.
  void setLearningRate(double rate);
  const absl::Status& status() const { return status_; }

 private:
  // False after an error, or with one of its own where the program has no such input.
  bool checkInput(const std::string& name);
  void write(const std::string& name, size_t elementBytes, const FillRows<char>& fill);
  void writeBytes(const std::string& name, const char* data, size_t bytes);
  absl::Status writeParts(const plan::NamedTensor& tensor, const FillRows<char>& fill);
  absl::Status writeRealRows(int64_t count, int64_t batch);
  // Does the tensor have the rows of a batch that is not full?
  bool isPartial(const plan::NamedTensor& tensor) const;
  // `fill` that asks for real rows alone, and copies the last one behind them.
  FillRows<char> repeatingLast(const FillRows<char>& fill, int64_t rowBytes) const;

  Executor& executor_;
  absl::Status status_;
  std::vector<char> part_;
  int64_t batch_ = 0;  // rows of the batch, where the program has metrics
  int64_t real_ = 0;   // of them
};

// By name: what an evaluation measured (weft/metrics.h).
using Metrics = std::map<std::string, double>;

struct TrainerOptions {
  int threadsPerRank = 0;  // 0: the ranks share the cores
  bool profile = false;
  std::chrono::milliseconds timeout{0};  // the longest a rank waits for others; 0: for ever
  // On a terminal a line that moves; elsewhere a line a second or ten for each `fit`, whichever is fewer, and the last.
  bool progress = true;
  int64_t totalSteps = 0;             // of the whole run, where it is several `fit`s, for progress; 0: of each alone
  const StopRequest* stop = nullptr;  // ends `fit` after the step it is in; must outlive the trainer
  bool stopAtNonFiniteLoss = true;    // false: go on, though what follows is most likely lost
  // Kernels of operators of one's own (weft/own_operator.h) beside those that there are.
  KernelRegistry kernels = {};
  bool checkFinite = false;  // an error of the first operator that makes a nan or infinity; takes time
};

// Options of a program that runs over a trainer's parameters.
struct ForwardOptions {
  // Parameters and state that the training program lacks get their initial values; else they are an error, which names
  // the nearest that it has.
  bool allowNew = false;
};

using FeedFunction = std::function<void(int64_t step, Feed& feed)>;

class Trainer {
 public:
  // Errors are kept in status(): a plan the runtime refuses.
  explicit Trainer(const Program& program, const TrainerOptions& options = {});
  ~Trainer();

  const absl::Status& status() const { return status_; }
  // Parameters from a safetensors file instead of the initial values. With Saved::kAll also state (the step, running
  // statistics of batch norm, the optimizer's moments): training goes on where the file was saved, with the step
  // numbers and the bits of a run that was never interrupted. The options of this program hold, also where the file has
  // others: another learning rate in it is passed over, with a line that says so.
  absl::Status load(const std::string& path, Saved what = Saved::kParameters);
  absl::Status save(const std::string& path, Saved what = Saved::kParameters,
                    NonFiniteValues nonFinite = NonFiniteValues::kRefuse) const;
  // Parameters under the names and in the shapes that others have given them (runtime/io/weights.h): from a file, an
  // index of several or their folder; to a file, or to a folder of files of so many bytes.
  absl::Status loadWeights(const std::string& path, const WeightNames& names);
  absl::Status saveWeights(const std::string& path, const WeightNames& names, int64_t bytesOfFile = 0) const;

  // Runs `steps` more steps, numbered from step(). Losses are appended to losses(). Errors: fewer than 0 steps; what
  // the executor finds; a loss that is not finite (options.stopAtNonFiniteLoss), with its step; Cancelled where
  // options.stop asked, after a whole step: saving is safe then.
  absl::Status fit(int64_t steps, const FeedFunction& feed);
  // Steps done, those before a loaded file was saved included.
  int64_t step() const { return step_; }
  // The loss of each step that this trainer ran, in order.
  const std::vector<double>& losses() const { return losses_; }
  // Cancelled if options.stop asked: for loops of one's own between or after `fit`s.
  absl::Status stopped() const;

  // An input that stays (a table, a mask): every program over this trainer's parameters reads this value where it has
  // an input of the name, in every step whose feed does not write it. The whole tensor, row-major. Again: another
  // value.
  template <typename T>
  void keepInput(const std::string& name, const std::vector<T>& data) {
    if (executor_ != nullptr) {
      executor_->store()->keepInput(name, data.data(), data.size() * sizeof(T));
    }
  }

  // Runs a forward program over this trainer's parameters, once for each batch, and returns its metrics over all of
  // them: of each pair of outputs NAME.sum and NAME.weight, as weft::metric puts them out, the sum of the sums divided
  // by that of the weights; NaN where nothing was weighed. A batch that is not full says so: Feed::rows. Errors: no
  // batches; a program without metrics; what forward() and the executor find; Cancelled where options.stop asked.
  absl::StatusOr<Metrics> evaluate(const Program& program, int64_t batches, const FeedFunction& feed);
  // The forward program's executor over this trainer's parameters and state, made on first use: for outputs other than
  // the loss. The program must outlive the trainer. Error: parameters or state that the training program lacks.
  absl::StatusOr<Executor*> forward(const Program& program, const ForwardOptions& options = {});

  Executor& executor() { return *executor_; }

 private:
  absl::Status keepLearningRate(double ours, const std::string& path);
  absl::StatusOr<double> runStep(const FeedFunction& feed);

  TrainerOptions options_;
  absl::Status status_;
  std::unique_ptr<KernelRegistry> kernels_;
  std::unique_ptr<Executor> executor_;
  std::vector<std::pair<const Program*, std::unique_ptr<Executor>>> forward_;
  std::vector<double> losses_;
  int64_t step_ = 0;
  int64_t total_ = 0;  // what progress counts to
};

}  // namespace weft
