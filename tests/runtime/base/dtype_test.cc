#include "runtime/base/dtype.h"

#include "gtest/gtest.h"

namespace weft {
namespace {

TEST(DType, NamesAndSizes) {
  struct Case {
    DType type;
    const char* name;
    int64_t bytes;
    bool isFloat;
  };
  for (const Case& c :
       {Case{DType::kF32, "f32", 4, true}, Case{DType::kF64, "f64", 8, true}, Case{DType::kBF16, "bf16", 2, true},
        Case{DType::kF16, "f16", 2, true}, Case{DType::kI32, "i32", 4, false}, Case{DType::kI64, "i64", 8, false},
        Case{DType::kBool, "bool", 1, false}}) {
    EXPECT_EQ(dtypeName(c.type), c.name);
    EXPECT_EQ(byteSize(c.type), c.bytes);
    EXPECT_EQ(isFloat(c.type), c.isFloat);
    EXPECT_EQ(parseDType(c.name), c.type);
  }
  EXPECT_FALSE(parseDType("float").has_value());
}

}  // namespace
}  // namespace weft
