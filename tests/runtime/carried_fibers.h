// Fibers and threads that carry them, for tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/base/fibers.h"

namespace weft::testing {

class CarriedFibers {
 public:
  explicit CarriedFibers(int64_t count) {
    absl::StatusOr<std::unique_ptr<Fibers>> made = Fibers::create(count);
    EXPECT_TRUE(made.ok()) << made.status();
    fibers_ = made.ok() ? *std::move(made) : nullptr;
  }
  ~CarriedFibers() {
    fibers_->begin(nullptr);
    fibers_->carry();
  }
  CarriedFibers(const CarriedFibers&) = delete;
  CarriedFibers& operator=(const CarriedFibers&) = delete;

  // On the calling thread and others.
  void run(int threads, const std::function<void(int64_t)>& work) {
    fibers_->begin(&work);
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; ++thread) {
      others.emplace_back([&] { fibers_->carry(); });
    }
    fibers_->carry();
    for (std::thread& thread : others) {
      thread.join();
    }
  }

 private:
  std::unique_ptr<Fibers> fibers_;
};

}  // namespace weft::testing
