// Each kind of file that the runtime writes, on a disk that is full: the file before or the file after, always whole.
#include <gtest/gtest.h>

#include "runtime/base/status.h"
#include "runtime/exec/executor.h"
#include "runtime/io/safetensors.h"
#include "runtime/plan/plan_file.h"
#include "tests/runtime/plan_builder.h"
#include "tests/runtime/test_kernels.h"
#include "tests/support/files.h"

namespace weft {
namespace {

using testing::SavedFile;
using testing::TemporaryDirectory;

std::vector<SafetensorsTensor> tensors(char fill, int64_t elements) {
  return {{"w", DType::kF32, {elements}, std::vector<char>(elements * sizeof(float), fill)},
          {"b", DType::kI32, {2}, std::vector<char>(8, fill)}};
}

plan::Plan planNamed(const std::string& name) {
  PlanBuilder b(1, 1);
  b.raw().set_name(name);
  return b.build();
}

// A save as bytes: written once beside.
std::string bytesOf(const std::function<absl::Status(const std::string&)>& save) {
  const TemporaryDirectory dir;
  EXPECT_TRUE(save(dir / "a").ok());
  return testing::contentsOf(dir / "a");
}

SavedFile savedTensors(const std::string& path, int64_t elements) {
  const auto save = [=](const std::string& to) { return writeSafetensors(to, tensors('n', elements)); };
  return {path, bytesOf([=](const std::string& to) { return writeSafetensors(to, tensors('o', 3)); }), bytesOf(save),
          [=] { return save(path); }};
}

TEST(FullDisk, ParametersAtEveryByte) {
  const TemporaryDirectory dir;
  const SavedFile file = savedTensors(dir / "a.safetensors", 20);
  ASSERT_GT(file.after.size(), 200U);
  file.checkAtEveryByte();
}

TEST(FullDisk, PlansAtEveryByte) {
  const TemporaryDirectory dir;
  const auto save = [](const std::string& to) { return writePlan(planNamed("after"), to); };
  SavedFile{dir / "a.plan", serializePlan(planNamed("before")).value(), bytesOf(save),
            [&] { return save(dir / "a.plan"); }}
      .checkAtEveryByte();
}

TEST(FullDisk, TracesAtEveryByte) {
  auto executor = Executor::create(planNamed("traced"), testKernels(), {.profile = true});
  ASSERT_TRUE(executor.ok() && (*executor)->runStep().ok());
  const TemporaryDirectory dir;
  const auto save = [&](const std::string& to) { return (*executor)->writeTrace(to); };
  SavedFile{dir / "a.json", "before", bytesOf(save), [&] { return save(dir / "a.json"); }}.checkAtEveryByte();
}

// A real disk of 256 KiB, filled up so far that each number of free pages occurs, for saves of several sizes around
// each number of pages.
TEST(FullDisk, ARealOneAtEveryPage) {
  const TemporaryDirectory dir;
  constexpr size_t kDisk = 256 << 10;
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  constexpr int kNotAllowed = 77;
  std::vector<SavedFile> files;
  for (const int64_t elements : {10, 1000, 1020, 9000}) {
    files.push_back(savedTensors(dir / "saved/a.safetensors", elements));
  }
  const int status = testing::inChild([&] {
    if (!testing::mountSmallDisk(dir.path(), kDisk)) {
      return kNotAllowed;
    }
    std::filesystem::create_directory(dir / "saved");
    int failures = 0;
    int saved = 0;
    for (size_t used = 0; used <= kDisk; used += page) {
      for (const SavedFile& file : files) {
        std::filesystem::remove(dir / "filler");
        std::ofstream(file.path, std::ios::binary) << file.before;
        std::ofstream(dir / "filler", std::ios::binary) << std::string(used, 'f');
        const absl::Status written = file.save();
        file.check(written, "filled with " + std::to_string(used));
        ++(written.ok() ? saved : failures);
      }
    }
    return failures > 0 && saved > 0 && !::testing::Test::HasFailure() ? 0 : 1;
  });
  if (status == kNotAllowed) {
    GTEST_SKIP() << "this system lets no test mount a file system";
  }
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace weft
