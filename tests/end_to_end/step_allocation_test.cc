// A step of a compiled model with the real kernels allocates nothing.
//
// Every way to memory of this process is replaced here: malloc and its kin, and all forms of operator new. While a step
// runs each call is noted with its caller. Excepted is what the libraries under the kernels (oneDNN, OpenMP) take
// inside a call, up to 32 KiB at a time: on processors with AVX2 alone oneDNN takes 16.3 KiB in each product.
#include <dlfcn.h>
#include <execinfo.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <iterator>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "examples/gpt/model.h"
#include "kernels/kernel.h"
#include "runtime/base/status.h"
#include "runtime/exec/executor.h"
#include "weft/weft.h"

// The C library's own, under the names it exports for replacements.
extern "C" {
void* __libc_malloc(size_t bytes);                  // NOLINT
void* __libc_calloc(size_t count, size_t bytes);    // NOLINT
void* __libc_realloc(void* memory, size_t bytes);   // NOLINT
void* __libc_memalign(size_t align, size_t bytes);  // NOLINT
void __libc_free(void* memory);                     // NOLINT
}

namespace {

struct Call {
  const void* caller;
  size_t bytes;
  int depth;
  void* stack[24];  // innermost first
};

constexpr int64_t kMaxCalls = 1 << 17;
constexpr size_t kLibraryLimit = 32 << 10;
Call calls[kMaxCalls];  // NOLINT: hooks have no other place
std::atomic<int64_t> callCount{0};
std::atomic<bool> watching{false};

void note(const void* caller, size_t bytes) {
  if (!watching.load(std::memory_order_relaxed)) {
    return;
  }
  const int64_t index = callCount.fetch_add(1);
  if (index < kMaxCalls) {
    calls[index].caller = caller;
    calls[index].bytes = bytes;
    calls[index].depth = backtrace(calls[index].stack, std::size(calls[index].stack));
  }
}

void* orAbort(void* memory) {
  if (memory == nullptr) {
    std::abort();
  }
  return memory;
}

}  // namespace

#define WEFT_NOTE(bytes) note(__builtin_return_address(0), bytes)

extern "C" {
void* malloc(size_t bytes) {
  WEFT_NOTE(bytes);
  return __libc_malloc(bytes);
}
void* calloc(size_t count, size_t bytes) {
  WEFT_NOTE(count * bytes);
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  WEFT_NOTE(bytes);
  return __libc_realloc(memory, bytes);
}
void* memalign(size_t align, size_t bytes) {
  WEFT_NOTE(bytes);
  return __libc_memalign(align, bytes);
}
void* aligned_alloc(size_t align, size_t bytes) {
  WEFT_NOTE(bytes);
  return __libc_memalign(align, bytes);
}
int posix_memalign(void** memory, size_t align, size_t bytes) {
  WEFT_NOTE(bytes);
  *memory = __libc_memalign(align, bytes);
  return *memory == nullptr ? ENOMEM : 0;
}
void free(void* memory) {
  __libc_free(memory);
}
}

void* operator new(size_t bytes) {
  WEFT_NOTE(bytes);
  return orAbort(__libc_malloc(bytes));
}
void* operator new[](size_t bytes) {
  WEFT_NOTE(bytes);
  return orAbort(__libc_malloc(bytes));
}
void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  WEFT_NOTE(bytes);
  return __libc_malloc(bytes);
}
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept {
  WEFT_NOTE(bytes);
  return __libc_malloc(bytes);
}
void* operator new(size_t bytes, std::align_val_t align) {
  WEFT_NOTE(bytes);
  return orAbort(__libc_memalign(static_cast<size_t>(align), bytes));
}
void* operator new[](size_t bytes, std::align_val_t align) {
  WEFT_NOTE(bytes);
  return orAbort(__libc_memalign(static_cast<size_t>(align), bytes));
}
void operator delete(void* memory) noexcept {
  __libc_free(memory);
}
void operator delete[](void* memory) noexcept {
  __libc_free(memory);
}
void operator delete(void* memory, size_t) noexcept {
  __libc_free(memory);
}
void operator delete[](void* memory, size_t) noexcept {
  __libc_free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  __libc_free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  __libc_free(memory);
}
void operator delete(void* memory, size_t, std::align_val_t) noexcept {
  __libc_free(memory);
}
void operator delete[](void* memory, size_t, std::align_val_t) noexcept {
  __libc_free(memory);
}

namespace weft {
namespace {

std::string objectOf(const void* address) {
  Dl_info info = {};
  return dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "?";
}

bool isAnyOf(const std::string& object, const std::vector<std::string>& libraries) {
  return std::any_of(libraries.begin(), libraries.end(),
                     [&](const std::string& library) { return object.find(library) != std::string::npos; });
}

// Is it code of the C or C++ library? Of the latter's templates this program has its own, which oneDNN then calls, too.
bool isStandard(const void* address) {
  Dl_info info = {};
  const bool isNamed = dladdr(address, &info) != 0 && info.dli_sname != nullptr;
  const absl::string_view symbol = isNamed ? info.dli_sname : "";
  return isAnyOf(objectOf(address), {"libstdc++", "libc.so", "ld-linux"}) || absl::StartsWith(symbol, "_ZNSt") ||
         absl::StartsWith(symbol, "_ZNKSt");
}

// Who asked for the memory: the innermost caller outside of those libraries, which allocate for others.
const void* askerOf(const Call& call) {
  const auto end = call.stack + call.depth;
  auto frame = std::find(call.stack, end, call.caller);
  while (frame != end && isStandard(*frame)) {
    ++frame;
  }
  return frame == end ? call.caller : *frame;
}

bool isExcepted(const Call& call) {
  return call.bytes <= kLibraryLimit && isAnyOf(objectOf(askerOf(call)), {"libdnnl", "libgomp", "libomp"});
}

// "48 bytes for weft-test+0x285f8b", as symbolizers read it.
std::string describe(const Call& call) {
  const void* asker = askerOf(call);
  Dl_info info = {};
  dladdr(asker, &info);
  const auto offset = static_cast<const char*>(asker) - static_cast<const char*>(info.dli_fbase);
  return absl::StrCat(call.bytes, " bytes for ", objectOf(asker), "+0x", absl::Hex(offset));
}

// Allocations of a step that are not excepted.
std::vector<std::string> allocationsOfStep(Executor& executor) {
  void* frames[4];
  backtrace(frames, std::size(frames));  // its first call loads a library
  callCount = 0;
  watching = true;
  const absl::Status status = executor.runStep();
  watching = false;
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_LE(callCount, kMaxCalls) << "more calls than were noted";
  std::vector<std::string> found;
  for (int64_t i = 0; i < std::min<int64_t>(callCount, kMaxCalls); ++i) {
    if (!isExcepted(calls[i])) {
      found.push_back(describe(calls[i]));
    }
  }
  return found;
}

// One block with attention, dropout and a vocabulary that tp pads; every kernel that training a GPT needs.
absl::StatusOr<Program> compileBlock(int zero) {
  Graph g;
  examples::GptConfig config;
  config.layers = 1;
  config.width = 32;
  config.heads = 4;
  config.context = 16;
  config.batch = 8;
  config.vocabulary = 61;
  config.dropout = 0.1;
  config.parallel = {"dp", "tp", false};
  const examples::GptModel model = examples::buildGpt(g, config);
  CompileOptions options;
  options.mesh = "dp=2,tp=2";
  options.micro = 2;
  options.zero = zero;
  options.clipNorm = 1.0;
  return compile(g, model.loss, optim::AdamW{.lr = 1e-3}, options);
}

absl::Status writeTokens(Executor& executor) {
  std::vector<int32_t> tokens(8 * 16);
  for (size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int32_t>(i * 7 % 61);
  }
  WEFT_RETURN_IF_ERROR(executor.writeTensor("x", tokens.data(), tokens.size() * sizeof(int32_t)));
  return executor.writeTensor("y", tokens.data(), tokens.size() * sizeof(int32_t));
}

TEST(StepAllocations, NoneInACompiledTransformer) {
  for (const int zero : {0, 3}) {
    const absl::StatusOr<Program> program = compileBlock(zero);
    ASSERT_TRUE(program.ok()) << program.status();
    for (const int threads : {1, 2}) {
      ExecutorOptions execution;
      execution.threadsPerRank = threads;
      auto executor = Executor::create(program->plan, cpuKernels(), execution);
      ASSERT_TRUE(executor.ok()) << executor.status();
      ASSERT_TRUE((*executor)->runInit().ok());
      for (int step = 0; step < 3; ++step) {
        ASSERT_TRUE(writeTokens(**executor).ok());
        EXPECT_EQ(allocationsOfStep(**executor), std::vector<std::string>())
            << "step " << step << ", zero " << zero << ", threads per rank " << threads;
      }
      EXPECT_GT((*executor)->readScalar("loss").value(), 0.0);
      // Nor is there staging memory for collectives beside the plan's regions.
      EXPECT_EQ((*executor)->allocatedBytes(), program->plan.memory().peak_bytes() * program->plan.ranks());
    }
  }
}

// The hooks see C's and C++'s calls, each from this program.
TEST(StepAllocations, HooksCount) {
  void* frames[4];
  backtrace(frames, std::size(frames));
  callCount = 0;
  watching = true;
  void* volatile first = std::malloc(10);
  void* volatile second = ::operator new(20);
  watching = false;
  std::free(first);
  ::operator delete(second);
  ASSERT_EQ(callCount, 2);
  for (int64_t i = 0; i < 2; ++i) {
    EXPECT_NE(describe(calls[i]).find(absl::StrCat(10 * (i + 1), " bytes for ")), std::string::npos);
    EXPECT_FALSE(isExcepted(calls[i]));
  }
}

}  // namespace
}  // namespace weft
