#include <algorithm>
#include <limits>

#include "tests/kernels/kernel_runner.h"

namespace weft::testing {
namespace {

constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
const std::vector<DType> kAllTypes = {DType::kF32, DType::kF64, DType::kI32, DType::kI64, DType::kBool};

Tensor numbered(DType type, const Ints& shape) {
  Tensor x{type, shape, Reals(elementsOf(shape))};
  for (size_t i = 0; i < x.values.size(); ++i) {
    x.values[i] = static_cast<double>(type == DType::kBool ? i % 3 == 0 : i + 1);
  }
  return x;
}

TEST(Reshape, KeepsTheOrder) {
  const Tensor x = numbered(DType::kF32, {4, 6});
  EXPECT_EQ(runOne({"reshape", {x}, {{DType::kF32, {2, 12}}}}).values, x.values);
  EXPECT_EQ(runOne({"reshape", {scalar(DType::kF64, 3)}, {{DType::kF64, {1, 1}}}}).values, Reals{3});
  EXPECT_TRUE(runOne({"reshape", {numbered(DType::kF32, {0, 4})}, {{DType::kF32, {2, 0}}}}).values.empty());
  expectError({"reshape", {x}, {{DType::kF32, {5, 5}}}}, kInvalid, "f32 [4,6] and f32 [5,5]");
}

void checkTranspose(DType type, const Ints& shape, const Ints& permutation) {
  const Tensor x = numbered(type, shape);
  Ints result;
  for (const int64_t d : permutation) {
    result.push_back(shape[d]);
  }
  Reals expected;
  forEachIndex(result, [&](const Ints& index) {
    Ints from(shape.size());
    for (size_t d = 0; d < permutation.size(); ++d) {
      from[permutation[d]] = index[d];
    }
    expected.push_back(x.values[positionOf(shape, from)]);
  });
  expectNear(runOne({"transpose", {x}, {{type, result}}, {{"permutation", permutation}}}), expected, {});
}

TEST(Transpose, EveryPermutation) {
  for (const DType type : kAllTypes) {
    for (const Ints& shape : std::vector<Ints>{{2, 3, 4, 5}, {1, 17, 1, 33}, {0, 2, 3, 1}}) {
      Ints permutation = {0, 1, 2, 3};
      do {
        checkTranspose(type, shape, permutation);
      } while (std::next_permutation(permutation.begin(), permutation.end()));
    }
  }
  // More than one tile (16) each way, with a rest.
  checkTranspose(DType::kF32, {50, 37}, {1, 0});
  checkTranspose(DType::kF64, {3, 35, 2, 34}, {0, 3, 2, 1});
  checkTranspose(DType::kF32, {}, {});
}

TEST(Transpose, Errors) {
  const Tensor x = numbered(DType::kF32, {2, 3});
  expectError({"transpose", {x}, {{DType::kF32, {3, 2}}}, {{"permutation", Ints{1, 1}}}}, kInvalid, "[1,1]");
  expectError({"transpose", {x}, {{DType::kF32, {3, 2}}}, {{"permutation", Ints{0}}}}, kInvalid, "[0]");
  expectError({"transpose", {x}, {{DType::kF32, {2, 3}}}, {{"permutation", Ints{1, 0}}}}, kInvalid,
              "output 0 is f32 [2,3], it must be f32 [3,2]");
}

TEST(Slice, TakesABox) {
  for (const DType type : kAllTypes) {
    const Tensor x = numbered(type, {4, 5, 6});
    for (const Ints& offsets : std::vector<Ints>{{0, 0, 0}, {1, 2, 3}, {3, 4, 5}}) {
      const Ints size = {4 - offsets[0], 5 - offsets[1], 6 - offsets[2]};
      expectSame(runOne({"slice", {x}, {{type, size}}, {{"offsets", offsets}, {"sizes", size}}}),
                 part(x, offsets, size));
      expectSame(runOne({"dynamic_slice", {x}, {{type, size}}, {}, offsets}), part(x, offsets, size));
    }
  }
  const Tensor x = numbered(DType::kF32, {4});
  EXPECT_TRUE(runOne({"slice", {x}, {{DType::kF32, {0}}}, {{"offsets", Ints{4}}}}).values.empty());
  expectError({"slice", {x}, {{DType::kF32, {3}}}, {{"offsets", Ints{2}}}}, kInvalid,
              "a box [3] at [2] is not inside [4]");
  expectError({"dynamic_slice", {x}, {{DType::kF32, {3}}}, {}, {2}}, absl::StatusCode::kOutOfRange, "[2, 5)");
  expectError({"dynamic_slice", {x}, {{DType::kF32, {3}}}, {}, {-1}}, absl::StatusCode::kOutOfRange, "[-1, 2)");
  expectError({"dynamic_slice", {x}, {{DType::kF32, {5}}}, {}, {0}}, kInvalid, "[5]");
  expectSame(runOne({"dynamic_slice", {scalar(DType::kF32, 2)}, {{DType::kF32, {}}}}), scalar(DType::kF32, 2));
}

TEST(DynamicUpdateSlice, PutsAPartInItsPlace) {
  for (const DType type : kAllTypes) {
    const Tensor whole = sample(type, {4, 5, 6}, 3, 0, 1);
    for (const Ints& offsets : std::vector<Ints>{{0, 0, 0}, {1, 2, 3}, {3, 0, 5}}) {
      const Ints size = {1, 2, 1};
      const Tensor box = numbered(type, size);
      Tensor expected = whole;
      place(box, offsets, expected);
      expectSame(runOne({"dynamic_update_slice", {whole, box}, {whole.spec()}, {}, offsets}), expected);
    }
  }
  const Tensor x = numbered(DType::kF32, {4});
  const auto update = [&](const Ints& size, int64_t start) {
    return Call{"dynamic_update_slice", {x, numbered(DType::kF32, size)}, {x.spec()}, {}, {start}};
  };
  expectError(update({3}, 2), absl::StatusCode::kOutOfRange, "[2, 5)");
  expectError(update({3}, -1), absl::StatusCode::kOutOfRange, "[-1, 2)");
  expectError(update({5}, 0), kInvalid, "[5]");
}

TEST(Pad, SurroundsWithZeros) {
  for (const DType type : kAllTypes) {
    const Tensor x = numbered(type, {2, 3});
    Tensor expected{type, {4, 6}, Reals(24, 0.0)};
    place(x, {1, 2}, expected);
    expectSame(runOne({"pad", {x}, {{type, {4, 6}}}, {{"low", Ints{1, 2}}, {"high", Ints{1, 1}}}}), expected);
  }
  const Tensor empty = numbered(DType::kF32, {0, 3});
  expectNear(runOne({"pad", {empty}, {{DType::kF32, {1, 3}}}, {{"low", Ints{1, 0}}, {"high", Ints{0, 0}}}}), {0, 0, 0},
             {});
  expectError({"pad", {numbered(DType::kF32, {2})}, {{DType::kF32, {3}}}, {{"low", Ints{2}}, {"high", Ints{0}}}},
              kInvalid, "a box [2] at [2] is not inside [3]");
}

TEST(Concat, AlongEachDimension) {
  for (const DType type : kAllTypes) {
    for (int64_t dim = 0; dim < 3; ++dim) {
      Ints shape = {2, 3, 4};
      Tensor expected{type, shape, {}};
      expected.shape[dim] = 6 + shape[dim];
      expected.values.resize(elementsOf(expected.shape));
      std::vector<Tensor> inputs;
      Ints offsets = {0, 0, 0};
      for (const int64_t size : {int64_t{1}, int64_t{0}, shape[dim], int64_t{5}}) {
        Ints mine = shape;
        mine[dim] = size;
        inputs.push_back(sample(type, mine, size + 1, 0, type == DType::kBool ? 2 : 9));
        place(inputs.back(), offsets, expected);
        offsets[dim] += size;
      }
      expectSame(runOne({"concat", inputs, {expected.spec()}, {{"dim", dim}}}), expected);
    }
  }
  const Tensor x = numbered(DType::kF32, {2, 3});
  expectError({"concat", {x, x}, {{DType::kF32, {2, 5}}}, {{"dim", int64_t{1}}}}, kInvalid, "6 elements");
  expectError({"concat", {x, x}, {{DType::kF32, {3, 6}}}, {{"dim", int64_t{1}}}}, kInvalid, "it must be f32 [3,3]");
  expectError({"concat", {x}, {{DType::kF32, {2, 3}}}, {{"dim", int64_t{2}}}}, kInvalid, "dimension 2");
}

TEST(Broadcast, RepeatsElements) {
  for (const DType type : kAllTypes) {
    for (const Ints& shape : std::vector<Ints>{{}, {4}, {3, 1}, {2, 1, 4}, {1}, {2, 3, 4}}) {
      const Tensor x = numbered(type, shape);
      Reals expected;
      forEachIndex({2, 3, 4}, [&](const Ints& index) { expected.push_back(x.values[positionOf(shape, index)]); });
      expectNear(runOne({"broadcast", {x}, {{type, {2, 3, 4}}}}), expected, {});
    }
  }
  expectError({"broadcast", {numbered(DType::kF32, {3})}, {{DType::kF32, {3, 4}}}}, kInvalid, "[3] does not");
}

TEST(Fill, EveryType) {
  for (const DType type : kAllTypes) {
    const double value = type == DType::kBool ? 1 : 2;
    expectNear(runOne({"fill", {}, {{type, {2, 2}}}, {{"value", 2.0}}}), Reals(4, value), {});
  }
  expectNear(runOne({"fill", {}, {{DType::kF32, {}}}, {{"value", 0.1}}}), {0.1F}, {});
}

TEST(Iota, CountsFromTheOrigin) {
  for (const DType type : {DType::kF32, DType::kF64, DType::kI32, DType::kI64}) {
    for (int64_t dim = 0; dim < 3; ++dim) {
      Reals expected;
      forEachIndex({2, 3, 4}, [&](const Ints& index) { expected.push_back(static_cast<double>(10 + index[dim])); });
      expectNear(runOne({"iota", {}, {{type, {2, 3, 4}}}, {{"dim", dim}}, {10}}), expected, {});
    }
  }
  expectError({"iota", {}, {{DType::kI32, {2}}}, {{"dim", int64_t{1}}}, {0}}, kInvalid, "dimension 1");
}

TEST(MaskPad, ByGlobalIndex) {
  const Tensor whole = numbered(DType::kF32, {6, 8});
  Tensor expected = whole;
  forEachIndex({6, 8}, [&](const Ints& index) {
    if (index[0] >= 4 || index[1] >= 7) {
      expected.values[positionOf({6, 8}, index)] = -1;
    }
  });
  const AttributeMap attributes = {{"dims", Ints{0, 1}}, {"valid", Ints{4, 7}}, {"fill", -1.0}};
  // The whole, and the four quarters with their origins.
  expectSame(runOne({"mask_pad", {whole}, {whole.spec()}, attributes, {0, 0}}), expected);
  for (const int64_t row : {0, 3}) {
    for (const int64_t column : {0, 4}) {
      const Tensor x = part(whole, {row, column}, {3, 4});
      expectSame(runOne({"mask_pad", {x}, {x.spec()}, attributes, {row, column}}),
                 part(expected, {row, column}, {3, 4}));
    }
  }
  expectError({"mask_pad", {whole}, {whole.spec()}, attributes, {0}}, kInvalid, "2 scalars");
  // Rows 2, 3, 8, 9 of a batch of 12 rows, of which 9 are there: the second of two micro-batches, of two stripes.
  AttributeMap runs = {{"dims", Ints{0}}, {"valid", Ints{9}}, {"fill", -1.0}};
  runs["run_dim"] = int64_t{0};
  runs["run"] = int64_t{2};
  runs["stride"] = int64_t{6};
  const Tensor rows = numbered(DType::kF32, {4, 3});
  Tensor masked = rows;
  std::fill(masked.values.begin() + 9, masked.values.end(), -1);
  expectSame(runOne({"mask_pad", {rows}, {rows.spec()}, runs, {2}}), masked);
  runs["run"] = int64_t{3};
  expectError({"mask_pad", {rows}, {rows.spec()}, runs, {2}}, kInvalid, "runs of 3, 6 apart, in dimension 0");
  const AttributeMap bad = {{"dims", Ints{2}}, {"valid", Ints{4}}, {"fill", 0.0}};
  expectError({"mask_pad", {whole}, {whole.spec()}, bad, {0}}, kInvalid, "dimension 2");
}

TEST(Accumulate, FirstMicroBatchReplaces) {
  for (const DType type : {DType::kF32, DType::kF64, DType::kI32}) {
    const Tensor acc = numbered(type, {19});
    const Tensor x = sample(type, {19}, 3, 0, 50);
    Reals sums;
    for (size_t i = 0; i < 19; ++i) {
      sums.push_back(acc.values[i] + x.values[i]);
    }
    expectSame(runOne({"accumulate", {acc, x}, {x.spec()}, {}, {0}}), x);
    expectNear(runOne({"accumulate", {acc, x}, {x.spec()}, {}, {2}}), sums, {epsilonOf(type), 0});
  }
  for (const DType type : {DType::kF32, DType::kI64, DType::kBool}) {
    const Tensor acc = sample(type, {19}, 4, 0, 1);
    const Tensor x = sample(type, {19}, 5, 0, 1);
    for (const std::string& reduce : {"max", "min"}) {
      Tensor expected = acc;
      for (size_t i = 0; i < 19; ++i) {
        expected.values[i] =
            reduce == "max" ? std::max(acc.values[i], x.values[i]) : std::min(acc.values[i], x.values[i]);
      }
      expectSame(runOne({"accumulate", {acc, x}, {x.spec()}, {{"reduce", reduce}}, {0}}), x);
      expectSame(runOne({"accumulate", {acc, x}, {x.spec()}, {{"reduce", reduce}}, {1}}), expected);
    }
  }
  const Tensor truth = tensor(DType::kBool, {1}, {1});
  expectError({"accumulate", {truth, truth}, {truth.spec()}, {}, {1}}, kInvalid, "bool");
  expectError({"accumulate", {truth, truth}, {truth.spec()}, {{"reduce", "mean"}}, {1}}, kInvalid, "'mean'");
  // What the accumulator held before the first micro-batch, NaN included, does not matter.
  const Tensor nan = tensor(DType::kF32, {1}, {std::numeric_limits<double>::quiet_NaN()});
  expectNear(runOne({"accumulate", {nan, tensor(DType::kF32, {1}, {2})}, {{DType::kF32, {1}}}, {}, {0}}), {2}, {});
}

TEST(Flip, EveryChoiceOfDimensions) {
  for (const DType type : kAllTypes) {
    for (const Ints& shape : std::vector<Ints>{{3, 4, 5}, {17, 1, 20}, {2, 33, 2}}) {
      for (const Ints& dims : std::vector<Ints>{{}, {0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}, {0, 1, 2}}) {
        const Tensor x = numbered(type, shape);
        Reals expected;
        forEachIndex(shape, [&](Ints index) {
          for (const int64_t dim : dims) {
            index[dim] = shape[dim] - 1 - index[dim];
          }
          expected.push_back(x.values[positionOf(shape, index)]);
        });
        expectNear(runOne({"flip", {x}, {x.spec()}, {{"dims", dims}}}), expected, {});
      }
    }
  }
  const Tensor x = numbered(DType::kF32, {2, 3});
  expectError({"flip", {x}, {x.spec()}, {{"dims", Ints{2}}}}, kInvalid, "dimension 2 of f32 [2,3]");
  expectError({"flip", {x}, {x.spec()}, {{"dims", Ints{1, 1}}}}, kInvalid, "listed twice");
}

TEST(Pad, WithAValue) {
  for (const DType type : kAllTypes) {
    const Tensor x = numbered(type, {1, 2});
    const double value = type == DType::kBool ? 1 : -7;
    expectNear(runOne({"pad", {x}, {{type, {2, 3}}}, {{"low", Ints{1, 0}}, {"value", value}}}),
               {value, value, value, x.values[0], x.values[1], value}, {});
  }
}

}  // namespace
}  // namespace weft::testing
