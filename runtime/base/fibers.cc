#include "runtime/base/fibers.h"

#include <setjmp.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <utility>

#include "absl/base/config.h"
#include "absl/strings/str_cat.h"

#ifdef ABSL_HAVE_ADDRESS_SANITIZER
#include <sanitizer/common_interface_defs.h>
#elif defined(ABSL_HAVE_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

namespace weft {
namespace {

constexpr size_t kStackBytes = size_t{8} << 20;  // as a thread has; pages that nobody touches take no memory
// How long a thread spins that finds no fiber ready, and how long it then sleeps before it looks again.
constexpr std::chrono::microseconds kSpinTime{100};
constexpr std::chrono::microseconds kSleep{20};

// What sanitizers must know of a stack: where it is, and when the thread goes from one to another.
#ifdef ABSL_HAVE_ADDRESS_SANITIZER
class WatchedStack {
 public:
  void begin(const void* bottom, size_t bytes) {
    bottom_ = bottom;
    bytes_ = bytes;
  }
  void leaveFor(WatchedStack& other, bool forEver) {
    other.from_ = this;
    __sanitizer_start_switch_fiber(forEver ? nullptr : &fakeStack_, other.bottom_, other.bytes_);
  }
  void arrive() { __sanitizer_finish_switch_fiber(fakeStack_, &from_->bottom_, &from_->bytes_); }

 private:
  const void* bottom_ = nullptr;
  size_t bytes_ = 0;
  void* fakeStack_ = nullptr;  // of locals that it keeps elsewhere
  WatchedStack* from_ = nullptr;
};
#elif defined(ABSL_HAVE_THREAD_SANITIZER)
class WatchedStack {
 public:
  ~WatchedStack() {
    if (isOwn_) {
      __tsan_destroy_fiber(fiber_);
    }
  }
  void begin(const void*, size_t) {
    fiber_ = __tsan_create_fiber(0);
    isOwn_ = true;
  }
  // What a call did before it left is known where its thread goes: races between fibers are seen where two threads
  // carry them, not on one.
  void leaveFor(WatchedStack& other, bool) {
    if (!isOwn_) {
      fiber_ = __tsan_get_current_fiber();
    }
    __tsan_switch_to_fiber(other.fiber_, 0);
  }
  void arrive() {}

 private:
  void* fiber_ = nullptr;
  bool isOwn_ = false;  // false: the thread's
};
#else
class WatchedStack {
 public:
  void begin(const void*, size_t) {}
  void leaveFor(WatchedStack&, bool) {}
  void arrive() {}
};
#endif

}  // namespace

// longjmp() as the C library has it: the one of <setjmp.h> may check (_FORTIFY_SOURCE) that it goes down one stack.
extern "C" [[noreturn]] void jump(jmp_buf registers, int value) __asm__("_longjmp");

// A stack, and where the call on it stands while no thread is on it.
class Fibers::Stack {
 public:
  // The thread's own.
  Stack() = default;
  ~Stack() {
    if (memory_ != MAP_FAILED) {
      munmap(memory_, mapped_);
    }
  }
  Stack(const Stack&) = delete;
  Stack& operator=(const Stack&) = delete;

  // Makes one of its own, on which `entry` will begin. Is there memory?
  bool begin(void (*entry)()) {
    const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    mapped_ = page + kStackBytes;
    memory_ =
        mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    // It grows down, to a page that nobody may touch.
    if (memory_ == MAP_FAILED || mprotect(memory_, page, PROT_NONE) != 0 || getcontext(&context_) != 0) {
      return false;
    }
    char* const bottom = static_cast<char*>(memory_) + page;
    context_.uc_stack.ss_sp = bottom;
    context_.uc_stack.ss_size = kStackBytes;
    makecontext(&context_, entry, 0);
    hasBegun_ = false;
    watched_.begin(bottom, kStackBytes);
    return true;
  }

  // The thread goes to the other's call; returns when it comes back to this one.
  void switchTo(Stack& other, bool forEver) {
    watched_.leaveFor(other.watched_, forEver);
    swapTo(other);
    arrive();
  }
  // The first that `entry` calls.
  void arrive() { watched_.arrive(); }

 private:
#if defined(ABSL_HAVE_ADDRESS_SANITIZER) || defined(ABSL_HAVE_THREAD_SANITIZER)
  void swapTo(Stack& other) { swapcontext(&context_, &other.context_); }
#else
  // swapcontext() sets the mask of signals, too: a system call each time, ten times as long as all else. So it is left
  // to sanitizers, which take a jump for one down the same stack.
  void swapTo(Stack& other) {
    if (_setjmp(registers_) != 0) {
      return;
    }
    if (!other.hasBegun_) {
      other.hasBegun_ = true;
      setcontext(&other.context_);
    }
    jump(other.registers_, 1);
  }
#endif

  void* memory_ = MAP_FAILED;
  size_t mapped_ = 0;
  ucontext_t context_;      // where `entry` begins
  bool hasBegun_ = true;    // with `entry`, or is the thread's own
  jmp_buf registers_ = {};  // of a call that was left
  WatchedStack watched_;
};

struct Fibers::Fiber {
  Fibers* owner = nullptr;
  int64_t number = 0;
  Stack stack;
  std::atomic<State> state = State::kDone;
  // What the fiber becomes when its stack is left; until then nobody else may go on with it.
  State leftAs = State::kDone;
  const absl::FunctionRef<bool()>* isReady = nullptr;  // while it is parked; null: it is

  // Returns when a carrier goes on with the fiber, maybe on another thread.
  void leave(State as, bool forEver = false);
};

// A thread that runs fibers.
struct Fibers::Carrier {
  Stack stack;
  Fiber* fiber = nullptr;

  // That of the calling thread. Neither inline nor free of side effects, lest the compiler keeps the address in a
  // fiber that another thread goes on with.
  [[gnu::noinline]] static Carrier*& current() {
    constinit thread_local Carrier* carrier = nullptr;
    asm volatile("" ::: "memory");
    return carrier;
  }
};

void Fibers::Fiber::leave(State as, bool forEver) {
  leftAs = as;
  stack.switchTo(Carrier::current()->stack, forEver);
}

absl::StatusOr<std::unique_ptr<Fibers>> Fibers::create(int64_t count) {
  std::unique_ptr<Fibers> made(new Fibers);
  for (int64_t i = 0; i < count; ++i) {
    auto fiber = std::make_unique<Fiber>();
    fiber->owner = made.get();
    fiber->number = i;
    const auto entry = [] {
      Fiber* const self = Carrier::current()->fiber;
      self->owner->serve(*self);
    };
    if (!fiber->stack.begin(entry)) {
      return absl::ResourceExhaustedError(
          absl::StrCat("the system gave ", i, " of ", count, " stacks of ", kStackBytes >> 20, " MiB"));
    }
    made->fibers_.push_back(std::move(fiber));
  }
  return made;
}

Fibers::~Fibers() = default;

bool Fibers::isCurrent() {
  return Carrier::current() != nullptr;
}

void Fibers::begin(const std::function<void(int64_t)>* work) {
  work_.store(work, std::memory_order_release);
  working_.store(static_cast<int64_t>(fibers_.size()), std::memory_order_release);
  for (const auto& fiber : fibers_) {
    fiber->state.store(State::kParked, std::memory_order_release);
  }
}

void Fibers::serve(Fiber& self) {
  self.stack.arrive();
  for (;;) {
    const std::function<void(int64_t)>* work = work_.load(std::memory_order_acquire);
    if (work != nullptr) {
      (*work)(self.number);
    }
    self.leave(State::kDone, work == nullptr);
  }
}

void Fibers::park(absl::FunctionRef<bool()> isReady) {
  Fiber& self = *Carrier::current()->fiber;
  self.isReady = &isReady;
  self.leave(State::kParked);
  self.isReady = nullptr;
}

Fibers::Fiber* Fibers::claim(int64_t last) {
  const auto count = static_cast<int64_t>(fibers_.size());
  for (int64_t step = 1; step <= count; ++step) {
    Fiber& fiber = *fibers_[(last + step) % count];
    State parked = State::kParked;
    if (fiber.state.load(std::memory_order_relaxed) == State::kParked &&
        fiber.state.compare_exchange_strong(parked, State::kCarried, std::memory_order_acquire)) {
      if (fiber.isReady == nullptr || (*fiber.isReady)()) {
        return &fiber;
      }
      fiber.state.store(State::kParked, std::memory_order_release);
    }
  }
  return nullptr;
}

void Fibers::carry() {
  using Clock = std::chrono::steady_clock;
  Carrier self;
  Carrier::current() = &self;
  int64_t last = static_cast<int64_t>(fibers_.size()) - 1;
  Clock::time_point busy = Clock::now();
  while (working_.load(std::memory_order_acquire) > 0) {
    Fiber* const fiber = claim(last);
    if (fiber == nullptr) {
      if (Clock::now() - busy > kSpinTime) {
        std::this_thread::sleep_for(kSleep);
      }
      continue;
    }
    self.fiber = fiber;
    self.stack.switchTo(fiber->stack, false);
    last = fiber->number;
    busy = Clock::now();
    const State state = fiber->leftAs;
    fiber->state.store(state, std::memory_order_release);
    if (state == State::kDone) {
      working_.fetch_sub(1, std::memory_order_acq_rel);
    }
  }
  Carrier::current() = nullptr;
}

}  // namespace weft
