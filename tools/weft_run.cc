// `weft-run PLAN`: runs a plan with the built-in CPU kernels. Needs no compiler.
//
// Inputs come from a safetensors file with tensors '<step>.<input>', steps counted from 0; without one they are zero.
#include <chrono>
#include <cmath>
#include <cstring>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "runtime/base/file_writer.h"
#include "runtime/base/finite.h"
#include "runtime/base/limits.h"
#include "runtime/base/numbers.h"
#include "runtime/base/status.h"
#include "runtime/base/stop_request.h"
#include "runtime/exec/executor.h"
#include "runtime/io/memory_use.h"
#include "runtime/io/parameters.h"
#include "runtime/io/safetensors.h"
#include "runtime/plan/plan_file.h"
#include "runtime/plan/statistics.h"
#include "tools/commands/flags.h"

namespace weft::tools {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kUsage[] = "weft-run PLAN [flags]: runs a compiled plan";
// Elements shown of a tensor that is printed for people.
constexpr size_t kShown = 8;
// Steps of one run at most: far more than any file holds inputs for.
constexpr int64_t kMostSteps = int64_t{1} << 40;
// Memory is compared with the plan after this many steps: lazy allocations of libraries are over by then.
constexpr int64_t kMemorySteps = 2;

const std::vector<Flag>& knownFlags() {
  static const std::vector<Flag> kFlags = {
      {"steps", Flag::kOptional, "number of steps (default: those in --data, else 1)"},
      {"init", Flag::kOptional, "safetensors file with initial parameters"},
      {"save", Flag::kOptional, "safetensors file for the parameters after the last step, or the one a signal ends"},
      {"save-nonfinite", Flag::kSwitch, "save also parameters that are nan or infinite"},
      {"data", Flag::kOptional, "safetensors file with inputs named '<step>.<input>'"},
      {"trace", Flag::kOptional, "file for a Chrome trace of all instructions"},
      {"threads-per-rank", Flag::kOptional, "threads of each rank's libraries (default: the cores shared out)"},
      {"timeout", Flag::kOptional,
       "seconds that a rank waits for others before the run ends with where all ranks are (default: 600; 0: for ever)"},
      {"check-finite", Flag::kSwitch, "stop at the first operator that makes a nan or infinity; slow"},
      {"print", Flag::kOptional, "names of tensors to print after each step, with commas (default: scalar outputs)"},
      {"json", Flag::kSwitch, "print JSON"},
      {"memory", Flag::kSwitch, "compare planned memory with the growth of the process"}};
  return kFlags;
}

// The longest that a rank waits for others: far longer than the longest stretch of kernels between two collectives.
constexpr double kTimeoutSeconds = 600;
constexpr double kMaxTimeoutSeconds = 1e9;

absl::StatusOr<std::chrono::milliseconds> timeoutOf(const Flags& flags) {
  const std::string text = flags.text("timeout", absl::StrCat(kTimeoutSeconds));
  const absl::StatusOr<double> seconds = parseReal(text, {0, kMaxTimeoutSeconds});
  if (!seconds.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("flag '--timeout': ", std::string(seconds.status().message()),
                                                   "; give seconds, for instance --timeout 60"));
  }
  // What is asked for is never rounded to 0, which means for ever.
  return std::chrono::milliseconds(static_cast<int64_t>(std::ceil(*seconds * 1e3)));
}

template <typename T>
Json listOf(const std::vector<char>& data) {
  std::vector<T> values(data.size() / sizeof(T));
  std::memcpy(values.data(), data.data(), values.size() * sizeof(T));
  return values;
}

absl::StatusOr<Json> valuesOf(const plan::NamedTensor& tensor, const std::vector<char>& data) {
  switch (dtypeOf(tensor.type())) {
    case DType::kF32:
      return listOf<float>(data);
    case DType::kF64:
      return listOf<double>(data);
    case DType::kI32:
      return listOf<int32_t>(data);
    case DType::kI64:
      return listOf<int64_t>(data);
    case DType::kBool:
      return listOf<uint8_t>(data);
    default:
      return absl::UnimplementedError(
          absl::StrCat("printing '", tensor.name(), "' of type ", dtypeName(dtypeOf(tensor.type()))));
  }
}

// A number for people: JSON has no nan and no infinity.
std::string textOf(const Json& value) {
  const double number = value.is_number_float() ? value.get<double>() : 0;
  return std::isfinite(number) ? value.dump() : std::isnan(number) ? "nan" : number < 0 ? "-inf" : "inf";
}

class Runner {
 public:
  explicit Runner(const Flags& flags) : flags_(flags) {}

  absl::Status run(const std::string& planPath) {
    for (const std::string file : {"save", "trace"}) {
      WEFT_RETURN_IF_ERROR(flags_.has(file) ? canWrite(flags_.text(file)) : absl::OkStatus());
    }
    WEFT_RETURN_IF_ERROR(load(planPath));
    WEFT_RETURN_IF_ERROR(openData());
    WEFT_RETURN_IF_ERROR(choosePrinted());
    WEFT_ASSIGN_OR_RETURN(const int64_t steps, flags_.integer("steps", dataSteps_ > 0 ? dataSteps_ : 1, {.least = 0}));
    WEFT_RETURN_IF_ERROR(executor_->runInit());
    if (flags_.has("init")) {
      WEFT_RETURN_IF_ERROR(loadParameters(*executor_, flags_.text("init")));
    }
    if (data_ == nullptr) {
      keepZeroInputs(*executor_);
    }
    result_["steps"] = Json::array();
    const StopOnSignals signals(stop_);
    int64_t done = 0;
    while (done < steps && !stop_.isRequested()) {
      WEFT_RETURN_IF_ERROR(runStep(done));
      ++done;
    }
    WEFT_RETURN_IF_ERROR(finish(done));
    return stop_.isRequested() ? stopped(done, steps) : absl::OkStatus();
  }

  // 0, or the signal that ended the run.
  int signal() const { return stop_.signal(); }

 private:
  absl::Status load(const std::string& planPath) {
    WEFT_ASSIGN_OR_RETURN(plan::Plan plan, readPlan(planPath));
    ExecutorOptions options;
    WEFT_ASSIGN_OR_RETURN(const int64_t threads, flags_.integer("threads-per-rank", 0, {0, kMaxRanks}));
    options.threadsPerRank = static_cast<int>(threads);
    options.profile = flags_.has("trace");
    options.checkFinite = flags_.has("check-finite");
    WEFT_ASSIGN_OR_RETURN(options.timeout, timeoutOf(flags_));
    const KernelRegistry kernels = cpuKernels();
    residentAtLoad_ = residentBytes();
    WEFT_ASSIGN_OR_RETURN(executor_, Executor::create(std::move(plan), kernels, options));
    const plan::Plan& loaded = executor_->plan();
    result_ = {
        {"plan", loaded.name()}, {"program", loaded.program()}, {"mesh", loaded.mesh()}, {"ranks", loaded.ranks()}};
    if (!json()) {
      std::cout << loaded.name() << ": " << loaded.ranks() << " ranks (" << loaded.mesh() << "), "
                << loaded.micro_batches() << " micro-batches\n";
    }
    return absl::OkStatus();
  }

  absl::Status stopped(int64_t done, int64_t steps) const {
    return absl::CancelledError(absl::StrCat("stopped ", stop_.reason(), " after step ", done, " of ", steps, "; ",
                                             flags_.has("save") ? "parameters saved to " + flags_.text("save")
                                                                : "nothing was saved, as --save was not given"));
  }

  absl::Status openData() {
    if (!flags_.has("data")) {
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(SafetensorsFile file, SafetensorsFile::open(flags_.text("data")));
    for (const auto& [name, entry] : file.entries()) {
      const std::string number = name.substr(0, name.find('.'));
      const absl::StatusOr<int64_t> step = parseInteger(number, {0, kMostSteps - 1});
      if (absl::IsOutOfRange(step.status())) {
        return absl::InvalidArgumentError(absl::StrCat(file.path(), ": '", name, "' is of step ", number,
                                                       "; steps are numbered from 0 to ", kMostSteps - 1));
      }
      dataSteps_ = std::max(dataSteps_, step.ok() ? *step + 1 : 0);
    }
    data_ = std::make_unique<SafetensorsFile>(std::move(file));
    return absl::OkStatus();
  }

  absl::Status choosePrinted() {
    if (flags_.has("print")) {
      printed_ = absl::StrSplit(flags_.text("print"), ',', absl::SkipEmpty());
      for (const std::string& name : printed_) {
        WEFT_RETURN_IF_ERROR(executor_->readTensor(name).status());
      }
      return absl::OkStatus();
    }
    for (const plan::NamedTensor& tensor : executor_->plan().tensors()) {
      if (tensor.kind() == plan::TENSOR_OUTPUT && tensor.shape_size() == 0) {
        printed_.push_back(tensor.name());
      }
    }
    return absl::OkStatus();
  }

  absl::Status writeInputs(int64_t step) {
    for (const plan::NamedTensor& tensor : executor_->plan().tensors()) {
      if (tensor.kind() != plan::TENSOR_INPUT || data_ == nullptr) {
        continue;
      }
      const std::string name = absl::StrCat(step, ".", tensor.name());
      // Shape and type first: a tensor of another size is not read at all.
      const std::vector<int64_t> shape(tensor.file_shape().begin(), tensor.file_shape().end());
      const auto entry = data_->entries().find(name);
      if (entry != data_->entries().end() &&
          (entry->second.type != dtypeOf(tensor.type()) || entry->second.shape != shape)) {
        return absl::InvalidArgumentError(
            absl::StrCat(data_->path(), ": '", name, "' is ", dtypeName(entry->second.type), " [",
                         absl::StrJoin(entry->second.shape, ", "), "], the plan wants ",
                         dtypeName(dtypeOf(tensor.type())), " [", absl::StrJoin(shape, ", "), "]"));
      }
      WEFT_ASSIGN_OR_RETURN(const std::vector<char> data, data_->read(name));
      WEFT_RETURN_IF_ERROR(executor_->writeTensor(tensor.name(), data.data(), data.size()));
    }
    return absl::OkStatus();
  }

  absl::Status runStep(int64_t step) {
    WEFT_RETURN_IF_ERROR(writeInputs(step));
    const auto begin = std::chrono::steady_clock::now();
    WEFT_RETURN_IF_ERROR(executor_->runStep());
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (step < kMemorySteps) {
      residentAfter_ = residentBytes();
    }
    Json record = {{"step", step}, {"seconds", seconds}};
    for (const std::string& name : printed_) {
      const plan::NamedTensor* tensor = executor_->findTensor(name);
      WEFT_ASSIGN_OR_RETURN(const std::vector<char> data, executor_->readTensor(name));
      WEFT_ASSIGN_OR_RETURN(const Json values, valuesOf(*tensor, data));
      record[name] = tensor->shape_size() == 0 ? values[0] : values;
    }
    if (!json()) {
      printStep(record);
    }
    result_["steps"].push_back(std::move(record));
    return checkStep(step);
  }

  absl::Status checkStep(int64_t step) const {
    const plan::NamedTensor* const loss = executor_->findTensor("loss");
    if (loss == nullptr || loss->kind() != plan::TENSOR_OUTPUT || loss->shape_size() > 0) {
      return absl::OkStatus();
    }
    WEFT_ASSIGN_OR_RETURN(const double value, executor_->readScalar("loss"));
    return checkLoss(value, step);
  }

  void printStep(const Json& record) const {
    std::cout << "step " << record["step"] << absl::StrFormat("  %.2f ms", record["seconds"].get<double>() * 1e3);
    for (const std::string& name : printed_) {
      std::vector<std::string> shown;
      const Json& value = record[name];
      for (size_t i = 0; value.is_array() && i < std::min(value.size(), kShown); ++i) {
        shown.push_back(textOf(value[i]));
      }
      const bool cut = value.is_array() && value.size() > kShown;
      std::cout << "  " << name << " "
                << (value.is_array() ? "[" + absl::StrJoin(shown, ", ") + (cut ? ", ...]" : "]") : textOf(value));
    }
    std::cout << std::endl;
  }

  absl::Status finish(int64_t steps) {
    if (flags_.has("memory")) {
      reportMemory(std::min(steps, kMemorySteps));
    }
    if (flags_.has("save")) {
      const bool all = flags_.has("save-nonfinite");
      WEFT_RETURN_IF_ERROR(saveParameters(*executor_, flags_.text("save"), Saved::kParameters,
                                          all ? NonFiniteValues::kSave : NonFiniteValues::kRefuse));
    }
    if (flags_.has("trace")) {
      WEFT_RETURN_IF_ERROR(executor_->writeTrace(flags_.text("trace")));
    }
    if (json()) {
      std::cout << result_.dump(2) << "\n";
    }
    return absl::OkStatus();
  }

  void reportMemory(int64_t steps) {
    const int64_t perRank = executor_->plan().memory().peak_bytes();
    const int64_t planned = plannedBytes(executor_->plan());
    const int64_t growth = residentAfter_ - residentAtLoad_;
    result_["memory"] = {{"planned_per_rank", perRank},
                         {"planned", planned},
                         {"allocated", executor_->allocatedBytes()},
                         {"resident_growth", growth},
                         {"measured_after_steps", steps}};
    if (!json()) {
      std::cout << absl::StrFormat(
          "memory: planned %d bytes per rank, %d in all; resident memory grew by %d from loading to the end of step %d "
          "(%.3f of planned)\n",
          perRank, planned, growth, steps,
          planned > 0 ? static_cast<double>(growth) / static_cast<double>(planned) : 0.0);
    }
  }

  bool json() const { return flags_.has("json"); }

  const Flags& flags_;
  StopRequest stop_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<SafetensorsFile> data_;
  std::vector<std::string> printed_;
  Json result_;
  int64_t dataSteps_ = 0;
  int64_t residentAtLoad_ = 0;
  int64_t residentAfter_ = 0;
};

int runPlan(int argc, char** argv) {
  if (wantsHelp(argc, argv)) {
    std::cout << flagHelp(kUsage, knownFlags());
    return 0;
  }
  if (argc < 2 || std::string(argv[1]).rfind("--", 0) == 0) {
    return usageError("weft-run", absl::InvalidArgumentError("the first argument is the plan file"));
  }
  const absl::StatusOr<Flags> flags = Flags::parse(knownFlags(), argc - 1, argv + 1);
  if (!flags.ok()) {
    return usageError("weft-run", flags.status());
  }
  Runner runner(*flags);
  const absl::Status status = runner.run(argv[1]);
  const int failed = status.ok() ? 0 : fail("weft-run", status);
  return absl::IsCancelled(status) ? exitStatusOf(runner.signal()) : failed;
}

}  // namespace
}  // namespace weft::tools

int main(int argc, char** argv) {
  return weft::tools::finishOutput("weft-run", weft::tools::runPlan(argc, argv));
}
