// Which inputs of a program were written since its last step.
//
// A step on an input that nobody wrote would train on the batch before, in silence. Inputs that stay from step to step
// are kept in the parameter store (ParameterStore::keepInput).
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "runtime/exec/parameter_store.h"
#include "runtime/plan/plan.pb.h"

namespace weft {

class InputTracker {
 public:
  // Tensors and slices are those of the whole program. `plan` must outlive this object.
  explicit InputTracker(const plan::Plan& plan);

  void wroteWhole(const plan::NamedTensor& tensor);
  void wroteSlice(const plan::NamedTensor& tensor, int64_t rank);

  // Before a step. `write` is called for kept inputs that this program has in another version, or not at all. Error:
  // an input that was neither written nor kept, or only in part. Allocates nothing unless it fails.
  template <typename Write>
  absl::Status beforeStep(const ParameterStore& store, const Write& write) {
    for (Input& input : inputs_) {
      if (input.missing == 0) {
        continue;
      }
      const KeptInput* const kept = store.findInput(input.tensor->name());
      if (kept == nullptr || input.missing != input.ranks) {
        return notWritten(input, store);
      }
      if (kept->version != input.version) {
        if (absl::Status status = write(*input.tensor, *kept); !status.ok()) {
          return status;
        }
        input.version = kept->version;
      }
    }
    return absl::OkStatus();
  }
  // Whatever became of the step, its inputs are used up.
  void afterStep();

 private:
  struct Input {
    const plan::NamedTensor* tensor = nullptr;
    std::vector<bool> needed;   // ranks that hold elements of it
    std::vector<bool> written;  // since the last step
    int64_t ranks = 0;          // how many are needed
    int64_t missing = 0;        // and how many of them are not written
    uint64_t version = 0;       // of the kept input that the ranks hold; 0: none
  };
  Input* find(const plan::NamedTensor& tensor);
  static void reset(Input& input);
  static absl::Status notWritten(const Input& input, const ParameterStore& store);

  std::vector<Input> inputs_;
};

}  // namespace weft
