#include "weft/trainer.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "frontend/progress.h"
#include "runtime/base/finite.h"
#include "runtime/base/status.h"
#include "runtime/io/parameters.h"
#include "runtime/plan/plan_file.h"
#include "weft/metrics.h"

namespace weft {
namespace {

// Scalars of the device's state that the optimizer reads.
constexpr char kLearningRate[] = "lr";
constexpr char kStepCount[] = "step";

absl::Status writeLearningRate(Executor& executor, double rate) {
  const float value = static_cast<float>(rate);
  return executor.writeTensor(kLearningRate, &value, sizeof(value));
}

ExecutorOptions executionOf(const TrainerOptions& options) {
  ExecutorOptions execution;
  execution.threadsPerRank = options.threadsPerRank;
  execution.timeout = options.timeout;
  execution.checkFinite = options.checkFinite;
  return execution;
}

bool same(const plan::Slice& a, const plan::Slice& b) {
  return std::equal(a.offset().begin(), a.offset().end(), b.offset().begin(), b.offset().end()) &&
         std::equal(a.valid().begin(), a.valid().end(), b.valid().begin(), b.valid().end());
}

// Does every rank hold whole rows?
bool isSplitByRows(const plan::NamedTensor& tensor) {
  return tensor.shape_size() > 0 &&
         std::all_of(tensor.slices().begin(), tensor.slices().end(), [&](const plan::Slice& slice) {
           return std::equal(slice.valid().begin() + 1, slice.valid().end(), tensor.shape().begin() + 1,
                             tensor.shape().end());
         });
}

// Bytes of one row without pads.
int64_t rowBytes(const plan::NamedTensor& tensor) {
  int64_t bytes = byteSize(dtypeOf(tensor.type()));
  for (int d = 1; d < tensor.shape_size(); ++d) {
    bytes *= tensor.shape(d);
  }
  return bytes;
}

}  // namespace

Feed::Feed(Executor& executor) : executor_(executor) {
  const plan::NamedTensor* const rows = executor.findTensor(kMetricRows);
  if (rows != nullptr && rows->kind() == plan::TENSOR_INPUT && rows->shape_size() == 1) {
    batch_ = rows->shape(0);
    real_ = batch_;
    status_ = writeRealRows(batch_, batch_);
  }
}

absl::Status Feed::writeRealRows(int64_t count, int64_t batch) {
  std::vector<char> real(batch, 0);
  std::fill_n(real.begin(), count, 1);
  return executor_.writeTensor(kMetricRows, real.data(), real.size());
}

int64_t Feed::rows(int64_t count) {
  if (!status_.ok()) {
    return count;
  }
  if (executor_.plan().program() == kTrainingProgram) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat("rows(", count,
                     ") in a training step, whose loss would count what fills the batch; give training "
                     "whole batches, or labels that the loss ignores"));
  } else if (batch_ == 0) {
    status_ = absl::FailedPreconditionError(
        absl::StrCat("rows(", count,
                     "): this program has no metric, so nothing would leave the other rows out; see weft/metrics.h"));
  } else if (count < 1 || count > batch_) {
    status_ = absl::InvalidArgumentError(absl::StrCat("rows(", count, "): a batch of this program has 1 to ", batch_));
  } else {
    real_ = count;
    status_ = writeRealRows(real_, batch_);
  }
  return count;
}

bool Feed::isPartial(const plan::NamedTensor& tensor) const {
  return real_ < batch_ && tensor.shape_size() > 0 && tensor.shape(0) == batch_;
}

Feed::FillRows<char> Feed::repeatingLast(const FillRows<char>& fill, int64_t rowBytes) const {
  return [this, &fill, rowBytes](int64_t first, int64_t rows, char* out) {
    const int64_t start = std::min(first, real_ - 1);
    const int64_t real = std::min(real_ - start, rows);
    fill(start, real, out);
    for (int64_t row = real; row < rows; ++row) {
      std::copy_n(out + (real - 1) * rowBytes, rowBytes, out + row * rowBytes);
    }
  };
}

void Feed::writeBytes(const std::string& name, const char* data, size_t bytes) {
  if (!checkInput(name)) {
    return;
  }
  const plan::NamedTensor* const tensor = executor_.findTensor(name);
  const int64_t row = rowBytes(*tensor);
  if (!isPartial(*tensor) || static_cast<int64_t>(bytes) != real_ * row) {
    status_ = executor_.writeTensor(name, data, bytes);
    return;
  }
  status_ = writeParts(
      *tensor, [&](int64_t first, int64_t rows, char* out) { std::copy_n(data + first * row, rows * row, out); });
}

bool Feed::checkInput(const std::string& name) {
  const plan::NamedTensor* const tensor = executor_.findTensor(name);
  if (!status_.ok()) {
    return false;
  }
  if (tensor == nullptr) {
    status_ = executor_.readTensor(name).status();  // lists the known names
  } else if (tensor->kind() != plan::TENSOR_INPUT) {
    status_ = absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is no input of this program, but ",
                     name == kLearningRate ? "the optimizer's learning rate; call setLearningRate"
                                           : "one of its own tensors; write it with executor().writeTensor"));
  }
  return status_.ok();
}

void Feed::setLearningRate(double rate) {
  if (!status_.ok()) {
    return;
  }
  status_ = executor_.findTensor(kLearningRate) != nullptr
                ? writeLearningRate(executor_, rate)
                : absl::FailedPreconditionError("this program has no learning rate: it has no optimizer");
}

void Feed::write(const std::string& name, size_t elementBytes, const FillRows<char>& fill) {
  if (!checkInput(name)) {
    return;
  }
  const plan::NamedTensor* const tensor = executor_.findTensor(name);
  if (byteSize(dtypeOf(tensor->type())) != static_cast<int64_t>(elementBytes)) {
    status_ = absl::InvalidArgumentError(absl::StrCat("tensor '", name, "' is ", dtypeName(dtypeOf(tensor->type())),
                                                      ", elements of ", elementBytes, " bytes were given"));
  } else {
    status_ = writeParts(*tensor, fill);
  }
}

absl::Status Feed::writeParts(const plan::NamedTensor& tensor, const FillRows<char>& given) {
  const int64_t row = rowBytes(tensor);
  const FillRows<char> fill = isPartial(tensor) ? repeatingLast(given, row) : given;
  if (!isSplitByRows(tensor)) {
    const int64_t rows = tensor.shape_size() > 0 ? tensor.shape(0) : 1;
    part_.resize(rows * row);
    fill(0, rows, part_.data());
    return executor_.writeTensor(tensor.name(), part_.data(), part_.size());
  }
  for (int rank = 0; rank < tensor.slices_size(); ++rank) {
    const plan::Slice& slice = tensor.slices(rank);
    // Neighbors often hold the same rows.
    if (rank == 0 || !same(slice, tensor.slices(rank - 1))) {
      part_.resize(slice.valid(0) * row);
      fill(slice.offset(0), slice.valid(0), part_.data());
    }
    WEFT_RETURN_IF_ERROR(executor_.writeSlice(tensor.name(), rank, part_.data(), part_.size()));
  }
  return absl::OkStatus();
}

Trainer::Trainer(const Program& program, const TrainerOptions& options)
    : options_(options), kernels_(std::make_unique<KernelRegistry>(cpuKernels())) {
  kernels_->addAll(options.kernels);
  ExecutorOptions execution = executionOf(options);
  execution.profile = options.profile;
  absl::StatusOr<std::unique_ptr<Executor>> executor = Executor::create(program.plan, *kernels_, execution);
  if (!executor.ok()) {
    status_ = executor.status();
    return;
  }
  executor_ = *std::move(executor);
  status_ = executor_->runInit();
}

Trainer::~Trainer() = default;

absl::Status Trainer::load(const std::string& path, Saved what) {
  WEFT_RETURN_IF_ERROR(status_);
  const bool learns = what == Saved::kAll && executor_->findTensor(kLearningRate) != nullptr;
  double rate = 0;
  if (learns) {
    WEFT_ASSIGN_OR_RETURN(rate, executor_->readScalar(kLearningRate));
  }
  WEFT_RETURN_IF_ERROR(loadParameters(*executor_, path, what));
  if (what == Saved::kAll && executor_->findTensor(kStepCount) != nullptr) {
    WEFT_ASSIGN_OR_RETURN(const double step, executor_->readScalar(kStepCount));
    step_ = static_cast<int64_t>(step);
  }
  return learns ? keepLearningRate(rate, path) : absl::OkStatus();
}

absl::Status Trainer::keepLearningRate(double ours, const std::string& path) {
  WEFT_ASSIGN_OR_RETURN(const double loaded, executor_->readScalar(kLearningRate));
  if (loaded == ours) {
    return absl::OkStatus();
  }
  if (options_.progress) {
    std::printf("learning rate %g of this program holds, not %g of %s\n", ours, loaded, path.c_str());
  }
  return writeLearningRate(*executor_, ours);
}

absl::Status Trainer::save(const std::string& path, Saved what, NonFiniteValues nonFinite) const {
  WEFT_RETURN_IF_ERROR(status_);
  return saveParameters(*executor_, path, what, nonFinite);
}

absl::Status Trainer::stopped() const {
  return options_.stop == nullptr || !options_.stop->isRequested()
             ? absl::OkStatus()
             : absl::CancelledError(absl::StrCat("stopped ", options_.stop->reason(), " after step ", step_,
                                                 total_ > 0 ? absl::StrCat(" of ", total_) : ""));
}

absl::StatusOr<double> Trainer::runStep(const FeedFunction& feed) {
  Feed inputs(*executor_);
  feed(step_, inputs);
  WEFT_RETURN_IF_ERROR(inputs.status());
  WEFT_RETURN_IF_ERROR(executor_->runStep());
  return executor_->readScalar("loss");
}

absl::Status Trainer::loadWeights(const std::string& path, const WeightNames& names) {
  WEFT_RETURN_IF_ERROR(status_);
  return weft::loadWeights(*executor_, path, names);
}

absl::Status Trainer::saveWeights(const std::string& path, const WeightNames& names, int64_t bytesOfFile) const {
  WEFT_RETURN_IF_ERROR(status_);
  return weft::saveWeights(*executor_, path, names, bytesOfFile);
}

absl::Status Trainer::fit(int64_t steps, const FeedFunction& feed) {
  WEFT_RETURN_IF_ERROR(status_);
  if (steps < 0) {
    return absl::InvalidArgumentError(absl::StrCat("fit was asked for ", steps, " steps; it takes 0 or more"));
  }
  total_ = std::max(options_.totalSteps, step_ + steps);
  Progress progress({step_, step_ + steps, total_}, options_.progress);
  for (int64_t i = 0; i < steps; ++i) {
    WEFT_RETURN_IF_ERROR(stopped());
    WEFT_ASSIGN_OR_RETURN(const double loss, runStep(feed));
    losses_.push_back(loss);
    ++step_;
    progress.report(step_, loss);
    WEFT_RETURN_IF_ERROR(options_.stopAtNonFiniteLoss ? checkLoss(loss, step_) : absl::OkStatus());
  }
  return stopped();
}

absl::StatusOr<Executor*> Trainer::forward(const Program& program, const ForwardOptions& options) {
  WEFT_RETURN_IF_ERROR(status_);
  for (const auto& [known, executor] : forward_) {
    if (known == &program) {
      return executor.get();
    }
  }
  ExecutorOptions execution = executionOf(options_);
  execution.store = executor_->store();
  execution.allowNew = options.allowNew;
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor, Executor::create(program.plan, *kernels_, execution));
  WEFT_RETURN_IF_ERROR(executor->runInit());
  forward_.emplace_back(&program, std::move(executor));
  return forward_.back().second.get();
}

namespace {

constexpr absl::string_view kSum = ".sum";
constexpr absl::string_view kWeight = ".weight";

// The names of metrics: of which the program puts out sum and weight.
std::vector<std::string> metricsOf(const Executor& executor) {
  const auto isScalar = [&](const std::string& name) {
    const plan::NamedTensor* const tensor = executor.findTensor(name);
    return tensor != nullptr && tensor->kind() == plan::TENSOR_OUTPUT && tensor->shape_size() == 0;
  };
  std::vector<std::string> names;
  for (const plan::NamedTensor& tensor : executor.plan().tensors()) {
    absl::string_view name = tensor.name();
    if (absl::ConsumeSuffix(&name, kSum) && isScalar(tensor.name()) && isScalar(absl::StrCat(name, kWeight))) {
      names.emplace_back(name);
    }
  }
  return names;
}

}  // namespace

absl::StatusOr<Metrics> Trainer::evaluate(const Program& program, int64_t batches, const FeedFunction& feed) {
  WEFT_ASSIGN_OR_RETURN(Executor * executor, forward(program));
  const std::vector<std::string> names = metricsOf(*executor);
  if (names.empty() || batches < 1) {
    return absl::InvalidArgumentError(
        batches < 1 ? absl::StrCat("evaluate was asked for ", batches, " batches; it takes 1 or more")
                    : "evaluate: the program has no metrics; give its graph some by weft::metric (weft/metrics.h)");
  }
  std::map<std::string, std::pair<double, double>> totals;  // of values and weights
  for (int64_t batch = 0; batch < batches; ++batch) {
    WEFT_RETURN_IF_ERROR(stopped());
    Feed inputs(*executor);
    feed(batch, inputs);
    WEFT_RETURN_IF_ERROR(inputs.status());
    WEFT_RETURN_IF_ERROR(executor->runStep());
    for (const std::string& name : names) {
      WEFT_ASSIGN_OR_RETURN(const double sum, executor->readScalar(absl::StrCat(name, kSum)));
      WEFT_ASSIGN_OR_RETURN(const double weight, executor->readScalar(absl::StrCat(name, kWeight)));
      totals[name].first += sum;
      totals[name].second += weight;
    }
  }
  Metrics metrics;
  for (const auto& [name, total] : totals) {
    metrics[name] = total.first / total.second;
  }
  return metrics;
}

}  // namespace weft
