#include "weft/trainer.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

#include "runtime/base/status.h"
#include "runtime/io/parameters.h"

namespace weft {

Trainer::Trainer(const Program& program, const TrainerOptions& options)
    : options_(options), kernels_(std::make_unique<KernelRegistry>(cpuKernels())) {
  ExecutorOptions execution;
  execution.threadsPerRank = options.threadsPerRank;
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

absl::Status Trainer::load(const std::string& path) {
  WEFT_RETURN_IF_ERROR(status_);
  return loadParameters(*executor_, path);
}

absl::Status Trainer::save(const std::string& path) const {
  WEFT_RETURN_IF_ERROR(status_);
  return saveParameters(*executor_, path);
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
  ExecutorOptions execution;
  execution.threadsPerRank = options_.threadsPerRank;
  execution.store = executor_.get();
  WEFT_ASSIGN_OR_RETURN(std::unique_ptr<Executor> executor, Executor::create(program.plan, *kernels_, execution));
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
