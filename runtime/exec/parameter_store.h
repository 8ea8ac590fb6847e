// Parameters and state that several programs work on: train, evaluate, generate.
//
// The first program over a store brings the memory of its parameters and state; a later one finds what it has by name
// and brings only what is new. The store lives as long as any program over it. Programs over one store run one at a
// time.
//
//   auto train = Executor::create(trainPlan, kernels);
//   ExecutorOptions options;
//   options.store = (*train)->store();
//   auto evaluate = Executor::create(evaluatePlan, kernels, options);  // reads what train writes
#pragma once

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/exec/rank_threads.h"

namespace weft {

// A rank's part of one named tensor.
struct StoredTensor {
  char* memory = nullptr;
  std::string place;    // type, global and local shape, slice: must agree between programs
  std::string program;  // that brought it: "'train' (dp=2)"
};

class ParameterStore {
 public:
  // Null if there is none of this name on this rank.
  const StoredTensor* find(const std::string& name, int64_t rank) const {
    const auto it = tensors_.find({name, rank});
    return it == tensors_.end() ? nullptr : &it->second;
  }
  void add(const std::string& name, int64_t rank, StoredTensor tensor) { tensors_[{name, rank}] = std::move(tensor); }
  // Keeps the memory that tensors lie in.
  void keep(std::unique_ptr<Region> region) { regions_.push_back(std::move(region)); }
  // Threads for a program of so many ranks: those of the first program over this store, if they fit.
  std::shared_ptr<RankThreads> threadsFor(int64_t ranks, int threadsPerRank) {
    if (threads_ == nullptr) {
      threads_ = std::make_shared<RankThreads>(ranks, threadsPerRank);
    }
    const bool fit = threads_->ranks() == ranks && threads_->threadsPerRank() == threadsPerRank;
    return fit ? threads_ : std::make_shared<RankThreads>(ranks, threadsPerRank);
  }

 private:
  std::map<std::pair<std::string, int64_t>, StoredTensor> tensors_;
  std::vector<std::unique_ptr<Region>> regions_;
  std::shared_ptr<RankThreads> threads_;
};

}  // namespace weft
