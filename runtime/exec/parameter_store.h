// Parameters and state that several programs work on: train, evaluate, generate.
//
// The first program over a store brings the memory of its parameters and state; a later one finds what it has by name.
// What it does not find is an error, unless ExecutorOptions::allowNew lets it bring more. The store lives as long as
// any program over it. Programs over one store run one at a time.
//
//   auto train = Executor::create(trainPlan, kernels);
//   ExecutorOptions options;
//   options.store = (*train)->store();
//   auto evaluate = Executor::create(evaluatePlan, kernels, options);  // reads what train writes
//   options.store->keepInput("mask", mask.data(), mask.size() * sizeof(float));  // for both, in all steps
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "runtime/exec/rank_threads.h"

namespace weft {

// A rank's part of one named tensor.
struct StoredTensor {
  char* memory = nullptr;
  std::string place;    // type, global and local shape, slice: must agree between programs
  std::string program;  // that brought it: "'train' (dp=2)"
};

// The value of an input that stays from step to step.
struct KeptInput {
  std::vector<char> data;  // the whole tensor, row-major
  bool isZero = false;     // every byte is, of a tensor of any size; no data then
  uint64_t version = 0;    // another one with each value
};

class ParameterStore {
 public:
  bool empty() const { return tensors_.empty(); }
  // Null if there is none of this name on this rank.
  const StoredTensor* find(const std::string& name, int64_t rank) const {
    const auto it = tensors_.find({name, rank});
    return it == tensors_.end() ? nullptr : &it->second;
  }
  void add(const std::string& name, int64_t rank, StoredTensor tensor) { tensors_[{name, rank}] = std::move(tensor); }
  // Keeps the memory that tensors lie in.
  void keep(std::unique_ptr<Region> region) { regions_.push_back(std::move(region)); }
  // The names that any rank holds, each once.
  std::vector<std::string> names() const {
    std::set<std::string> names;
    for (const auto& [key, tensor] : tensors_) {
      names.insert(key.first);
    }
    return {names.begin(), names.end()};
  }

  // Declares an input that stays (a table, a mask): every program over this store that has an input of this name, also
  // one made later, reads this value in every step for which nobody writes the input. Again: another value.
  void keepInput(const std::string& name, const void* data, size_t bytes) {
    const char* const from = static_cast<const char*>(data);
    inputs_[name] = {std::vector<char>(from, from + bytes), false, ++versions_};
  }
  void keepZeroInput(const std::string& name) { inputs_[name] = {{}, true, ++versions_}; }
  // Null if there is none.
  const KeptInput* findInput(const std::string& name) const {
    const auto it = inputs_.find(name);
    return it == inputs_.end() ? nullptr : &it->second;
  }
  std::vector<std::string> inputNames() const {
    std::vector<std::string> names;
    for (const auto& [name, input] : inputs_) {
      names.push_back(name);
    }
    return names;
  }

  // Threads for a program of so many ranks: those of the first program over this store, if they fit. Error: the system
  // gives no more threads.
  absl::StatusOr<std::shared_ptr<RankThreads>> threadsFor(int64_t ranks, int threadsPerRank) {
    if (threads_ != nullptr && threads_->ranks() == ranks && threads_->threadsPerRank() == threadsPerRank) {
      return threads_;
    }
    WEFT_ASSIGN_OR_RETURN(std::shared_ptr<RankThreads> made, RankThreads::create(ranks, threadsPerRank));
    threads_ = threads_ == nullptr ? made : threads_;
    return made;
  }

 private:
  std::map<std::pair<std::string, int64_t>, StoredTensor> tensors_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::map<std::string, KeptInput> inputs_;
  uint64_t versions_ = 0;
  std::shared_ptr<RankThreads> threads_;
};

}  // namespace weft
