#include "weft/trainer.h"

#include <algorithm>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "frontend/progress.h"
#include "runtime/base/finite.h"
#include "runtime/base/status.h"
#include "runtime/io/parameters.h"
#include "runtime/plan/plan_file.h"

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

absl::Status Feed::writeParts(const plan::NamedTensor& tensor, const FillRows<char>& fill) {
  const int64_t row = rowBytes(tensor);
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

absl::StatusOr<double> Trainer::evaluate(const Program& program, int64_t batches, const FeedFunction& feed) {
  WEFT_ASSIGN_OR_RETURN(Executor * executor, forward(program));
  double total = 0;
  for (int64_t batch = 0; batch < batches; ++batch) {
    WEFT_RETURN_IF_ERROR(stopped());
    Feed inputs(*executor);
    feed(batch, inputs);
    WEFT_RETURN_IF_ERROR(inputs.status());
    WEFT_RETURN_IF_ERROR(executor->runStep());
    WEFT_ASSIGN_OR_RETURN(const double loss, executor->readScalar("loss"));
    total += loss;
  }
  return batches > 0 ? total / static_cast<double>(batches) : 0.0;
}

}  // namespace weft
