#include "runtime/exec/input_tracker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "runtime/base/names.h"

namespace weft {
namespace {

bool hasElements(const plan::Slice& slice) {
  return std::all_of(slice.valid().begin(), slice.valid().end(), [](int64_t size) { return size > 0; });
}

}  // namespace

InputTracker::InputTracker(const plan::Plan& plan) {
  for (const plan::NamedTensor& tensor : plan.tensors()) {
    if (tensor.kind() != plan::TENSOR_INPUT) {
      continue;
    }
    Input& input = inputs_.emplace_back();
    input.tensor = &tensor;
    for (const plan::Slice& slice : tensor.slices()) {
      input.needed.push_back(hasElements(slice));
    }
    input.written.resize(input.needed.size());
    input.ranks = std::count(input.needed.begin(), input.needed.end(), true);
    reset(input);
  }
}

void InputTracker::reset(Input& input) {
  std::fill(input.written.begin(), input.written.end(), false);
  input.missing = input.ranks;
}

InputTracker::Input* InputTracker::find(const plan::NamedTensor& tensor) {
  const auto it =
      std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& input) { return input.tensor == &tensor; });
  return it == inputs_.end() ? nullptr : &*it;
}

void InputTracker::wroteWhole(const plan::NamedTensor& tensor) {
  if (Input* const input = find(tensor)) {
    std::fill(input->written.begin(), input->written.end(), true);
    input->missing = 0;
    input->version = 0;
  }
}

void InputTracker::wroteSlice(const plan::NamedTensor& tensor, int64_t rank) {
  if (Input* const input = find(tensor)) {
    input->missing -= input->needed[rank] && !input->written[rank] ? 1 : 0;
    input->written[rank] = true;
    input->version = 0;
  }
}

void InputTracker::afterStep() {
  for (Input& input : inputs_) {
    reset(input);
  }
}

absl::Status InputTracker::notWritten(const Input& input, const ParameterStore& store) {
  for (size_t rank = 0; rank < input.needed.size(); ++rank) {
    if (input.needed[rank] && !input.written[rank]) {
      const std::string nearest = nearestName(input.tensor->name(), store.inputNames());
      return absl::FailedPreconditionError(
          absl::StrCat("input '", input.tensor->name(), "' was not written since the last step",
                       input.missing < input.ranks ? absl::StrCat(" on rank ", rank) : "",
                       "; write it before every step, or once with keepInput if it stays",
                       nearest.empty() ? "" : absl::StrCat(" (kept: '", nearest, "')")));
    }
  }
  return absl::InternalError(absl::StrCat("input '", input.tensor->name(), "' is written"));
}

}  // namespace weft
