// Fibers: calls with stacks of their own, carried by a few threads. A fiber that waits leaves its thread to another
// that can go on, whichever thread that ran on before; nothing else takes the thread from it.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace weft {

class Fibers {
 public:
  // Error: no memory for the stacks.
  static absl::StatusOr<std::unique_ptr<Fibers>> create(int64_t count);
  // After the fibers have ended, if they ever began.
  ~Fibers();
  Fibers(const Fibers&) = delete;
  Fibers& operator=(const Fibers&) = delete;

  // Fiber i will call work(i), which lets no exception out and holds no lock while it waits; null: it will end. Before
  // any thread calls carry() for it, after all that carried the work before have returned. Allocates nothing.
  void begin(const std::function<void(int64_t)>* work);
  // Runs fibers on the calling thread, beside others that do, until all have returned from their work. Allocates
  // nothing.
  void carry();

  // Is it a fiber that asks?
  static bool isCurrent();

  // On a fiber: others run until `isMet()`, which any thread may ask, or until `timeout` (0: never) has passed. Is it
  // met? Nobody notices before one of the threads has nothing else to do, also that time is up.
  template <typename IsMet>
  static bool wait(const IsMet& isMet, std::chrono::milliseconds timeout) {
    const auto start = std::chrono::steady_clock::now();
    const auto isLate = [&] { return timeout.count() > 0 && std::chrono::steady_clock::now() - start > timeout; };
    while (!isMet()) {
      if (isLate()) {
        return false;
      }
      park([&] { return isMet() || isLate(); });
    }
    return true;
  }

 private:
  class Stack;
  struct Carrier;
  struct Fiber;
  enum class State : uint8_t {
    kParked,   // waits to begin or for what it is ready for
    kCarried,  // by a thread that runs it, or looks whether it is ready
    kDone,     // has returned from its work
  };

  Fibers() = default;
  // The calling fiber waits until a thread that finds it ready goes on with it.
  static void park(absl::FunctionRef<bool()> isReady);
  // What a fiber does as long as it lives.
  void serve(Fiber& self);
  // One that is ready, now carried; those after `last` first. Null: there is none.
  Fiber* claim(int64_t last);

  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::atomic<const std::function<void(int64_t)>*> work_ = nullptr;
  std::atomic<int64_t> working_ = 0;  // fibers that have not returned
};

}  // namespace weft
