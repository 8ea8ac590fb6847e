#include "weft/trainer.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"
#include "runtime/io/parameters.h"
#include "runtime/plan/plan_file.h"

namespace weft {
namespace {

ExecutorOptions executionOf(const TrainerOptions& options) {
  ExecutorOptions execution;
  execution.threadsPerRank = options.threadsPerRank;
  execution.timeout = options.timeout;
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

void Feed::write(const std::string& name, size_t elementBytes, const FillRows<char>& fill) {
  const plan::NamedTensor* tensor = executor_.findTensor(name);
  if (!status_.ok()) {
    return;
  }
  if (tensor == nullptr) {
    status_ = executor_.readTensor(name).status();  // lists the known names
  } else if (byteSize(dtypeOf(tensor->type())) != static_cast<int64_t>(elementBytes)) {
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
    // Neighbours often hold the same rows.
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
  return loadParameters(*executor_, path, what);
}

absl::Status Trainer::save(const std::string& path, Saved what) const {
  WEFT_RETURN_IF_ERROR(status_);
  return saveParameters(*executor_, path, what);
}

absl::Status Trainer::fit(int64_t steps, const FeedFunction& feed) {
  WEFT_RETURN_IF_ERROR(status_);
  const auto start = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < steps; ++i) {
    Feed inputs(*executor_);
    feed(step_, inputs);
    WEFT_RETURN_IF_ERROR(inputs.status());
    WEFT_RETURN_IF_ERROR(executor_->runStep());
    WEFT_ASSIGN_OR_RETURN(const double loss, executor_->readScalar("loss"));
    losses_.push_back(loss);
    ++step_;
    if (options_.progress) {
      report(i + 1, steps, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
  }
  return absl::OkStatus();
}

void Trainer::report(int64_t done, int64_t steps, double seconds) const {
  const bool terminal = isatty(fileno(stdout)) != 0;
  if (!terminal && done % options_.printEvery != 0 && done != steps) {
    return;
  }
  const double rate = static_cast<double>(done) / seconds;
  const double left = static_cast<double>(steps - done) / rate;
  constexpr int kWidth = 24;
  std::string bar(static_cast<size_t>(kWidth * done / steps), '#');
  bar.resize(kWidth, '.');
  std::printf("%s[%s] step %lld/%lld  loss %.4f  %.2f steps/s  %.0f s left%s", terminal ? "\r" : "", bar.c_str(),
              static_cast<long long>(done), static_cast<long long>(steps), losses_.back(), rate, left,
              terminal && done != steps ? "   " : "\n");
  std::fflush(stdout);
}

absl::StatusOr<Executor*> Trainer::forward(const Program& program) {
  WEFT_RETURN_IF_ERROR(status_);
  for (const auto& [known, executor] : forward_) {
    if (known == &program) {
      return executor.get();
    }
  }
  ExecutorOptions execution = executionOf(options_);
  execution.store = executor_->store();
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor, Executor::create(program.plan, *kernels_, execution));
  WEFT_RETURN_IF_ERROR(executor->runInit());
  forward_.emplace_back(&program, std::move(executor));
  return forward_.back().second.get();
}

absl::StatusOr<double> Trainer::evaluate(const Program& program, int64_t batches, const FeedFunction& feed) {
  WEFT_ASSIGN_OR_RETURN(Executor * executor, forward(program));
  double total = 0;
  for (int64_t batch = 0; batch < batches; ++batch) {
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
