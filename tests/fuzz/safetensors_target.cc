// safetensors files, as parameters of a small program, too.
#include <cstring>

#include "absl/strings/str_cat.h"
#include "runtime/io/parameters.h"
#include "runtime/io/safetensors.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/test_kernels.h"

namespace weft::fuzz {
namespace {

constexpr size_t kLengthBytes = 8;

// Two parameters, one of another shape in files, and some state.
Executor& program() {
  static const std::unique_ptr<Executor> kProgram = [] {
    PlanBuilder b(2, 1);
    b.named("fc.weight", plan::TENSOR_PARAMETER, b.buffer(plan::PARAMETER, DType::kF32, {2, 2}), {3, 2}, 0);
    plan::NamedTensor* bias =
        b.named("fc.bias", plan::TENSOR_PARAMETER, b.buffer(plan::PARAMETER, DType::kF32, {6}), {6}, -1);
    bias->clear_file_shape();
    bias->add_file_shape(2);
    bias->add_file_shape(3);
    b.named("step", plan::TENSOR_STATE, b.buffer(plan::STATE, DType::kI64, {}), {}, -1);
    auto executor = Executor::create(b.build(), testKernels());
    requireOk(executor.status(), "the program that reads parameters");
    return std::move(executor).value();
  }();
  return *kProgram;
}

Outcome run(const std::string& bytes) {
  const MemoryFile file(bytes);
  const absl::StatusOr<SafetensorsFile> opened = SafetensorsFile::open(file.path());
  for (const Saved what : {Saved::kParameters, Saved::kAll}) {
    loadParameters(program(), file.path(), what).IgnoreError();
  }
  if (!opened.ok()) {
    return Outcome::kRefused;
  }
  for (const auto& [name, entry] : opened->entries()) {
    const absl::StatusOr<std::vector<char>> data = opened->read(name);
    requireOk(data.status(), "a tensor of a file that was opened");
    require(data->size() == static_cast<size_t>(entry.end - entry.begin), "a tensor has another size than its entry");
  }
  require(!opened->read("no such tensor").ok() || opened->entries().count("no such tensor") > 0, "an unknown tensor");
  return Outcome::kAccepted;
}

const std::vector<std::string>& words() {
  static const std::vector<std::string> kWords = wordsOf(
      "{|}|[|]|:|,|\"|\"dtype\":\"F32\"|\"shape\":[2]|F64|BF16|I64|U8|BOOL|C64|null|"
      "\"data_offsets\":[0,8]|__metadata__|true|\\u00|\\ud8||1e400|2.0|-0|fc.weight|[[[[[[[[");
  return kWords;
}

// The header's text or the data, with the length made to fit.
std::string mutate(const std::string& bytes, Mutator& mutator) {
  uint64_t length = 0;
  if (bytes.size() >= kLengthBytes) {
    std::memcpy(&length, bytes.data(), kLengthBytes);
  }
  if (bytes.size() < kLengthBytes || length > bytes.size() - kLengthBytes || mutator.chance(5)) {
    return mutator.raw(bytes);
  }
  std::string header = bytes.substr(kLengthBytes, length);
  std::string data = bytes.substr(kLengthBytes + length);
  if (mutator.chance(85)) {
    header = mutateText(header, words(), mutator);
  } else {
    data.resize(mutator.below(data.size() + 16));
  }
  length = mutator.chance(3) ? static_cast<uint64_t>(mutator.edge(static_cast<int64_t>(length))) : header.size();
  return std::string(reinterpret_cast<const char*>(&length), kLengthBytes) + header + data;
}

}  // namespace

Target safetensorsTarget() {
  return {"safetensors", run, mutate, {}};
}

}  // namespace weft::fuzz
