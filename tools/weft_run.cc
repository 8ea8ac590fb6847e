// weft-run: runs a plan file on ranks of this process. It knows nothing of the compiler.

#include <cstdio>
#include <iostream>
#include <optional>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "kernels/kernel.h"
#include "runtime/base/status.h"
#include "runtime/exec/executor.h"
#include "runtime/io/checkpoint.h"
#include "runtime/io/memory_use.h"
#include "runtime/io/safetensors.h"
#include "runtime/plan/plan_file.h"
#include "tools/commands/flags.h"

namespace weft::tools {
namespace {

constexpr char kUsage[] = "weft-run PLAN";

const std::vector<Flag>& runFlags() {
  static const std::vector<Flag> flags{
      {"steps", Flag::kOptional, "steps to run, 2 unless given"},
      {"init", Flag::kOptional, "first parameters from this safetensors file"},
      {"data", Flag::kOptional, "inputs from this safetensors file: tensors named STEP.INPUT, repeated from the start"},
      {"save", Flag::kOptional, "parameters to this safetensors file at the end"},
      {"trace", Flag::kOptional, "write a Chrome trace"},
      {"threads-per-rank", Flag::kOptional, "0 = share of the cores"},
      {"memory", Flag::kSwitch, "print predicted and resident memory"},
      {"json", Flag::kSwitch, "print JSON"},
  };
  return flags;
}

absl::StatusOr<int64_t> integerFlag(const Flags& flags, const std::string& name, int64_t otherwise) {
  const std::string text = flags.text(name, std::to_string(otherwise));
  char* end = nullptr;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (text.empty() || *end != '\0' || value < 0) {
    return absl::InvalidArgumentError(absl::StrCat("--", name, " takes a number, not '", text, "'"));
  }
  return value;
}

// Writes the inputs of one step; without data they stay zero.
absl::Status feed(Executor& executor, const SafetensorsFile& data, int64_t step) {
  int64_t steps = 0;
  while (data.entries().lower_bound(absl::StrCat(steps, ".")) != data.entries().end() &&
         data.entries().lower_bound(absl::StrCat(steps, "."))->first.rfind(absl::StrCat(steps, "."), 0) == 0) {
    ++steps;
  }
  if (steps == 0) {
    return absl::InvalidArgumentError(data.path() + ": no tensor is named 0.INPUT");
  }
  for (const plan::NamedTensor& tensor : executor.plan().tensors()) {
    if (tensor.kind() == plan::TENSOR_INPUT) {
      WEFT_ASSIGN_OR_RETURN(const std::vector<char> bytes, data.read(absl::StrCat(step % steps, ".", tensor.name())));
      WEFT_RETURN_IF_ERROR(executor.writeTensor(tensor.name(), bytes.data(), bytes.size()));
    }
  }
  return absl::OkStatus();
}

nlohmann::ordered_json scalarOutputs(const Executor& executor) {
  nlohmann::ordered_json values = nlohmann::ordered_json::object();
  for (const plan::NamedTensor& tensor : executor.plan().tensors()) {
    if (tensor.kind() == plan::TENSOR_OUTPUT && tensor.shape_size() == 0) {
      absl::StatusOr<double> value = executor.readScalar(tensor.name());
      if (value.ok()) {
        values[tensor.name()] = *value;
      }
    }
  }
  return values;
}

absl::Status run(const std::string& path, const Flags& flags) {
  WEFT_ASSIGN_OR_RETURN(const int64_t steps, integerFlag(flags, "steps", 2));
  WEFT_ASSIGN_OR_RETURN(const int64_t threads, integerFlag(flags, "threads-per-rank", 0));
  WEFT_ASSIGN_OR_RETURN(plan::Plan plan, readPlan(path));
  const int64_t predicted = plan.memory().peak_bytes();
  const int64_t ranks = plan.ranks();
  const KernelRegistry kernels = cpuKernels();
  const int64_t before = residentBytes();
  ExecutorOptions options;
  options.threadsPerRank = static_cast<int>(threads);
  options.profile = flags.has("trace");
  WEFT_ASSIGN_OR_RETURN(const std::unique_ptr<Executor> executor, Executor::create(std::move(plan), kernels, options));
  WEFT_RETURN_IF_ERROR(executor->runInit());
  if (flags.has("init")) {
    WEFT_RETURN_IF_ERROR(loadParameters(*executor, flags.text("init")));
  }
  std::optional<SafetensorsFile> data;
  if (flags.has("data")) {
    WEFT_ASSIGN_OR_RETURN(data, SafetensorsFile::open(flags.text("data")));
  }
  nlohmann::ordered_json out = {{"steps", nlohmann::ordered_json::array()}};
  int64_t after = 0;
  for (int64_t step = 0; step < steps; ++step) {
    if (data) {
      WEFT_RETURN_IF_ERROR(feed(*executor, *data, step));
    }
    WEFT_RETURN_IF_ERROR(executor->runStep());
    if (step < 2) {
      after = residentBytes();
    }
    out["steps"].push_back(scalarOutputs(*executor));
    if (!flags.has("json")) {
      std::cout << "step " << step + 1 << "  " << out["steps"].back().dump() << "\n";
    }
  }
  if (flags.has("memory")) {
    out["memory"] = {{"predicted_per_rank", predicted},
                     {"predicted_all_ranks", predicted * ranks},
                     {"resident_growth", after - before}};
    if (!flags.has("json")) {
      std::cout << "memory: predicted " << predicted << " bytes per rank, " << predicted * ranks
                << " in all; resident growth from loading to the end of step 2: " << after - before << "\n";
    }
  }
  if (flags.has("json")) {
    std::cout << out.dump(1) << "\n";
  }
  if (flags.has("trace")) {
    WEFT_RETURN_IF_ERROR(executor->writeTrace(flags.text("trace")));
  }
  return flags.has("save") ? saveParameters(*executor, flags.text("save")) : absl::OkStatus();
}

}  // namespace
}  // namespace weft::tools

int main(int argc, char** argv) {
  using namespace weft::tools;  // NOLINT: this file is the tool
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp(kUsage, runFlags());
    return 0;
  }
  std::string path;
  if (argc > 1 && argv[1][0] != '-') {
    path = argv[1];
    --argc;
    ++argv;
  }
  absl::StatusOr<Flags> flags = Flags::parse(runFlags(), argc, argv);
  if (!flags.ok() || path.empty()) {
    return usageError(kUsage, flags.ok() ? absl::InvalidArgumentError("a plan file is missing") : flags.status());
  }
  const absl::Status status = run(path, *flags);
  return status.ok() ? 0 : fail(kUsage, status);
}
