// Functions of the API against the test vectors of the ONNX operators that compute the same (data/onnx/ops).
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>

#include "tests/support/data.h"
#include "weft/weft.h"

namespace weft {
namespace {

using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// What is read of onnx.TensorProto: dims = 1, data_type = 2, raw_data = 9.
struct OnnxTensor {
  Shape shape;
  Type type = kF32;
  std::string bytes;
};

Type typeOf(uint64_t number) {
  switch (number) {
    case 6:
      return kI32;
    case 7:
      return kI64;
    case 9:
      return kBool;
    case 11:
      return kF64;
    default:
      EXPECT_EQ(number, 1U) << "an element type that no case here has";
      return kF32;
  }
}

OnnxTensor readTensor(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream content;
  content << file.rdbuf();
  const std::string text = content.str();
  CodedInputStream stream(reinterpret_cast<const uint8_t*>(text.data()), static_cast<int>(text.size()));
  OnnxTensor tensor;
  while (const uint32_t tag = stream.ReadTag()) {
    const int field = WireFormatLite::GetTagFieldNumber(tag);
    uint64_t number = 0;
    if (field == 1 && stream.ReadVarint64(&number)) {
      tensor.shape.push_back(static_cast<int64_t>(number));
    } else if (field == 2 && stream.ReadVarint64(&number)) {
      tensor.type = typeOf(number);
    } else if (field == 9) {
      uint32_t size = 0;
      stream.ReadVarint32(&size);
      stream.ReadString(&tensor.bytes, static_cast<int>(size));
    } else if (!WireFormatLite::SkipField(&stream, tag)) {
      ADD_FAILURE() << path;
      break;
    }
  }
  return tensor;
}

template <typename T>
std::vector<double> elements(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return {values.begin(), values.end()};
}

std::vector<double> valuesOf(Type type, const std::string& bytes) {
  switch (type) {
    case kF32:
      return elements<float>(bytes);
    case kF64:
      return elements<double>(bytes);
    case kI32:
      return elements<int32_t>(bytes);
    case kI64:
      return elements<int64_t>(bytes);
    case kBool:
      return elements<uint8_t>(bytes);
  }
  return {};
}

using Inputs = std::vector<Tensor>;

struct Vector {
  std::string directory;
  std::function<Tensor(const Inputs& x)> build;  // reads the first `inputs`; others are attributes here
  size_t inputs = 1;
  size_t output = 0;
};

void PrintTo(const Vector& test, std::ostream* out) {
  *out << test.directory;
}

std::vector<Vector> elementwise() {
  return {
      {"add_bcast", [](const Inputs& x) { return x[0] + x[1]; }, 2},
      {"sub_bcast", [](const Inputs& x) { return x[0] - x[1]; }, 2},
      {"mul_bcast", [](const Inputs& x) { return x[0] * x[1]; }, 2},
      {"div_bcast", [](const Inputs& x) { return x[0] / x[1]; }, 2},
      {"pow", [](const Inputs& x) { return pow(x[0], x[1]); }, 2},
      {"clip", [](const Inputs& x) { return clamp(x[0], -1, 1); }},
      {"erf", [](const Inputs& x) { return erf(x[0]); }},
      {"exp", [](const Inputs& x) { return exp(x[0]); }},
      {"log", [](const Inputs& x) { return log(x[0]); }},
      {"sqrt", [](const Inputs& x) { return sqrt(x[0]); }},
      {"tanh", [](const Inputs& x) { return tanh(x[0]); }},
      {"relu", [](const Inputs& x) { return relu(x[0]); }},
      {"sigmoid", [](const Inputs& x) { return sigmoid(x[0]); }},
      {"softplus", [](const Inputs& x) { return softplus(x[0]); }},
      {"swish", [](const Inputs& x) { return silu(x[0]); }},
      {"leakyrelu_default", [](const Inputs& x) { return leakyRelu(x[0]); }},
      {"gelu_default_2", [](const Inputs& x) { return gelu(x[0], Gelu::kErf); }},
      {"gelu_tanh_2", [](const Inputs& x) { return gelu(x[0]); }},
      {"where_example", [](const Inputs& x) { return where(x[0], x[1], x[2]); }, 3},
  };
}

std::vector<Vector> reductionsAndProducts() {
  return {
      {"argmax_keepdims_random", [](const Inputs& x) { return argmax(x[0], 1, {.keepDims = true, .type = kI64}); }},
      {"reduce_max_keepdims_random", [](const Inputs& x) { return max(x[0], {1}, true); }},
      {"reduce_mean_keepdims_random", [](const Inputs& x) { return mean(x[0], {1}, true); }},
      {"reduce_sum_keepdims_random", [](const Inputs& x) { return sum(x[0], {1}, true); }},
      {"cumsum_2d_axis_1", [](const Inputs& x) { return cumsum(x[0], 1); }},
      {"softmax_axis_1", [](const Inputs& x) { return softmax(x[0], 1); }},
      {"softmax_default_axis", [](const Inputs& x) { return softmax(x[0]); }},
      {"softmax_large_number", [](const Inputs& x) { return softmax(x[0]); }},
      {"logsoftmax_axis_1", [](const Inputs& x) { return logSoftmax(x[0], 1); }},
      {"logsoftmax_large_number", [](const Inputs& x) { return logSoftmax(x[0]); }},
      {"top_k", [](const Inputs& x) { return topK(x[0], 3).values; }},
      {"top_k", [](const Inputs& x) { return cast(topK(x[0], 3).indices, kI64); }, 1, 1},
      {"matmul_2d", [](const Inputs& x) { return matmul(x[0], x[1]); }, 2},
      {"matmul_3d", [](const Inputs& x) { return matmul(x[0], x[1]); }, 2},
      {"matmul_4d", [](const Inputs& x) { return matmul(x[0], x[1]); }, 2},
      {"matmul_bcast", [](const Inputs& x) { return matmul(x[0], x[1]); }, 2},
      {"einsum_batch_matmul", [](const Inputs& x) { return einsum("bij, bjk -> bik", x[0], x[1]); }, 2},
      {"sce_mean", [](const Inputs& x) { return crossEntropy(x[0], x[1]); }, 2},
      {"sce_mean_3d", [](const Inputs& x) { return crossEntropy(transpose(x[0], {0, 2, 1}), x[1]); }, 2},
      {"sce_mean_no_weight_ii", [](const Inputs& x) { return crossEntropy(x[0], x[1], {.ignoreIndex = 2}); }, 2},
      {"sce_none", [](const Inputs& x) { return crossEntropy(x[0], x[1], {.reduction = LossReduction::kNone}); }, 2},
      {"sce_sum", [](const Inputs& x) { return crossEntropy(x[0], x[1], {.reduction = LossReduction::kSum}); }, 2},
  };
}

std::vector<Vector> moves() {
  return {
      {"gather_0", [](const Inputs& x) { return take(x[0], x[1]); }, 2},
      {"gather_1", [](const Inputs& x) { return take(x[0], x[1], 1); }, 2},
      {"gather_2d_indices", [](const Inputs& x) { return take(x[0], x[1], 1); }, 2},
      {"gather_elements_1", [](const Inputs& x) { return gather(x[0], 0, x[1]); }, 2},
      {"scatter_elements_with_duplicate_indices", [](const Inputs& x) { return scatterAdd(x[0], 1, x[1], x[2]); }, 3},
      // Off is 1, on 3.
      {"onehot_with_axis", [](const Inputs& x) { return 1 + 2 * transpose(oneHot(cast(x[0], kI32), 10), {0, 2, 1}); }},
      {"concat_2d_axis_1", [](const Inputs& x) { return concat({x[0], x[1]}, 1); }, 2},
      {"expand_dim_changed", [](const Inputs& x) { return expand(x[0], {2, -1, 6}); }},
      {"reshape_reordered_all_dims", [](const Inputs& x) { return reshape(x[0], {4, 2, 3}); }},
      {"slice", [](const Inputs& x) { return slice(x[0], {0, 0, 0}, {3, 10, 5}); }},
      {"transpose_all_permutations_0", [](const Inputs& x) { return transpose(x[0], {0, 1, 2}) + 0; }},
      {"tril", [](const Inputs& x) { return tril(x[0]); }},
      {"triu", [](const Inputs& x) { return triu(x[0]); }},
  };
}

std::vector<Vector> vectors() {
  std::vector<Vector> all = elementwise();
  for (const auto& more : {reductionsAndProducts(), moves()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

class OnnxVectorTest : public ::testing::TestWithParam<Vector> {};

TEST_P(OnnxVectorTest, GivesTheSame) {
  const Vector& test = GetParam();
  const std::string directory = "onnx/ops/test_" + test.directory;
  WEFT_REQUIRE_DATA(directory);
  const std::string path = tests::dataDirectory() + "/" + directory;
  Graph g;
  Inputs inputs;
  std::vector<OnnxTensor> given;
  for (size_t i = 0; i < test.inputs; ++i) {
    given.push_back(readTensor(path + "/input_" + std::to_string(i) + ".pb"));
    inputs.push_back(g.input("x" + std::to_string(i), given[i].shape, given[i].type, {.batchDim = -1}));
  }
  const OnnxTensor expected = readTensor(path + "/output_" + std::to_string(test.output) + ".pb");
  const Tensor y = test.build(inputs);
  EXPECT_EQ(y.shape(), expected.shape);
  EXPECT_EQ(y.type(), expected.type);
  g.output("y", y);
  const absl::StatusOr<Program> program = compileForward(g, Tensor());
  ASSERT_TRUE(program.ok()) << program.status();
  const KernelRegistry kernels = cpuKernels();
  auto executor = Executor::create(program->plan, kernels);
  ASSERT_TRUE(executor.ok()) << executor.status();
  for (size_t i = 0; i < test.inputs; ++i) {
    const std::string name = "x" + std::to_string(i);
    ASSERT_TRUE((*executor)->writeTensor(name, given[i].bytes.data(), given[i].bytes.size()).ok()) << name;
  }
  ASSERT_TRUE((*executor)->runStep().ok());
  const std::vector<char> bytes = *(*executor)->readTensor("y");
  const std::vector<double> actual = valuesOf(y.type(), std::string(bytes.begin(), bytes.end()));
  const std::vector<double> wanted = valuesOf(expected.type, expected.bytes);
  ASSERT_EQ(actual.size(), wanted.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    // Both round to f32 a few times, in another order.
    EXPECT_NEAR(actual[i], wanted[i], 2e-6 * (1 + std::abs(wanted[i]))) << "element " << i;
  }
}

INSTANTIATE_TEST_SUITE_P(Vectors, OnnxVectorTest, ::testing::ValuesIn(vectors()));

}  // namespace
}  // namespace weft
