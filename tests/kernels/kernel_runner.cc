#include "tests/kernels/kernel_runner.h"

#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"

namespace weft::testing {
namespace {

constexpr size_t kGuard = 128;
constexpr std::byte kGarbage{0xC5};

// Bytes at a multiple of 64, between guards.
class GuardedBytes {
 public:
  explicit GuardedBytes(size_t bytes) : size_(bytes), room_(bytes + 2 * kGuard + 64, kGarbage) {
    const auto address = reinterpret_cast<uintptr_t>(room_.data()) + kGuard;
    data_ = room_.data() + ((address + 63) / 64 * 64 - reinterpret_cast<uintptr_t>(room_.data()));
  }

  std::byte* data() { return data_; }

  bool guardsIntact() const {
    const std::byte* begin = room_.data();
    for (const std::byte* at = begin; at != begin + room_.size(); ++at) {
      if ((at < data_ || at >= data_ + size_) && *at != kGarbage) {
        return false;
      }
    }
    return true;
  }

 private:
  size_t size_;
  std::vector<std::byte> room_;
  std::byte* data_;
};

template <typename T>
void store(const Reals& values, std::byte* to) {
  for (size_t i = 0; i < values.size(); ++i) {
    const T element = static_cast<T>(values[i]);
    std::memcpy(to + i * sizeof(T), &element, sizeof(T));
  }
}

template <typename T>
void load(const std::byte* from, Reals& values) {
  for (size_t i = 0; i < values.size(); ++i) {
    T element;
    std::memcpy(&element, from + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(element);
  }
}

void store(const Tensor& tensor, std::byte* to) {
  switch (tensor.type) {
    case DType::kF32:
      return store<float>(tensor.values, to);
    case DType::kF64:
      return store<double>(tensor.values, to);
    case DType::kI32:
      return store<int32_t>(tensor.values, to);
    case DType::kI64:
      return store<int64_t>(tensor.values, to);
    default:
      return store<uint8_t>(tensor.values, to);
  }
}

Tensor load(const TensorSpec& spec, const std::byte* from) {
  Tensor result{spec.type, spec.shape, Reals(spec.elements())};
  switch (spec.type) {
    case DType::kF32:
      load<float>(from, result.values);
      break;
    case DType::kF64:
      load<double>(from, result.values);
      break;
    case DType::kI32:
      load<int32_t>(from, result.values);
      break;
    case DType::kI64:
      load<int64_t>(from, result.values);
      break;
    default:
      load<uint8_t>(from, result.values);
      break;
  }
  return result;
}

std::vector<GuardedBytes> memoryOf(const std::vector<TensorSpec>& specs) {
  std::vector<GuardedBytes> memory;
  memory.reserve(specs.size());
  for (const TensorSpec& spec : specs) {
    memory.emplace_back(spec.bytes());
  }
  return memory;
}

}  // namespace

int64_t elementsOf(const Ints& shape) {
  return TensorSpec{DType::kF32, shape}.elements();
}

Tensor tensor(DType type, const Ints& shape, const Reals& values) {
  EXPECT_EQ(elementsOf(shape), static_cast<int64_t>(values.size()));
  Tensor result{type, shape, values};
  for (double& value : result.values) {
    value = type == DType::kF32 ? static_cast<double>(static_cast<float>(value)) : value;
  }
  return result;
}

Tensor scalar(DType type, double value) {
  return tensor(type, {}, {value});
}

Tensor sample(DType type, const Ints& shape, uint64_t seed, double low, double high) {
  Reals values(elementsOf(shape));
  uint64_t state = seed * 2654435761U + 12345;
  for (double& value : values) {
    // A linear congruential generator (Knuth, MMIX); the high bits are good.
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = low + (high - low) * static_cast<double>(state >> 11) * 0x1p-53;
    value = isFloat(type) ? value : std::floor(value);
  }
  return tensor(type, shape, values);
}

Tensor part(const Tensor& x, const Ints& offsets, const Ints& size) {
  Tensor result{x.type, size, {}};
  forEachIndex(size, [&](Ints index) {
    for (size_t d = 0; d < index.size(); ++d) {
      index[d] += offsets[d];
    }
    result.values.push_back(x.values[positionOf(x.shape, index)]);
  });
  return result;
}

void place(const Tensor& x, const Ints& offsets, Tensor& whole) {
  size_t next = 0;
  forEachIndex(x.shape, [&](Ints index) {
    for (size_t d = 0; d < index.size(); ++d) {
      index[d] += offsets[d];
    }
    whole.values[positionOf(whole.shape, index)] = x.values[next++];
  });
}

KernelSpec specOf(const Call& call) {
  KernelSpec spec{call.name, {}, call.outputs, call.attributes, call.scalars.size()};
  for (const Tensor& input : call.inputs) {
    spec.inputs.push_back(input.spec());
  }
  return spec;
}

absl::StatusOr<std::vector<Tensor>> tryRun(const Call& call) {
  const KernelSpec spec = specOf(call);
  auto kernel = cpuKernels({.plainMatmul = call.plainMatmul}).create(spec);
  if (!kernel.ok()) {
    return kernel.status();
  }
  EXPECT_LE((*kernel)->workspaceBytes(), describe(spec, Target::kCpu).workspaceBytes) << call.name;
  std::vector<GuardedBytes> inputs = memoryOf(spec.inputs);
  std::vector<GuardedBytes> outputs = memoryOf(spec.outputs);
  GuardedBytes workspace((*kernel)->workspaceBytes());
  std::vector<const void*> from;
  std::vector<void*> to;
  for (size_t i = 0; i < inputs.size(); ++i) {
    store(call.inputs[i], inputs[i].data());
    from.push_back(inputs[i].data());
  }
  for (GuardedBytes& output : outputs) {
    to.push_back(output.data());
  }
  if (call.inPlace) {
    to[call.inPlace->output] = inputs[call.inPlace->input].data();
  }
  const absl::Status status = (*kernel)->run({from.data(), to.data(), call.scalars.data(), workspace.data()});
  if (!status.ok()) {
    return status;
  }
  std::vector<Tensor> results;
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_TRUE(outputs[i].guardsIntact()) << call.name << " wrote outside output " << i;
    results.push_back(load(spec.outputs[i], static_cast<const std::byte*>(to[i])));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    EXPECT_TRUE(inputs[i].guardsIntact()) << call.name << " wrote outside input " << i;
    if (!call.inPlace) {
      expectSame(load(spec.inputs[i], inputs[i].data()), call.inputs[i]);
    }
  }
  EXPECT_TRUE(workspace.guardsIntact()) << call.name << " wrote outside its workspace";
  return results;
}

std::vector<Tensor> run(const Call& call) {
  auto results = tryRun(call);
  EXPECT_TRUE(results.ok()) << call.name << ": " << results.status();
  if (results.ok()) {
    return *std::move(results);
  }
  std::vector<Tensor> empty;
  for (const TensorSpec& spec : call.outputs) {
    empty.push_back({spec.type, spec.shape, Reals(spec.elements(), std::numeric_limits<double>::quiet_NaN())});
  }
  return empty;
}

Tensor runOne(const Call& call) {
  return run(call).at(0);
}

void expectError(const Call& call, absl::StatusCode code, const std::string& text) {
  const auto results = tryRun(call);
  EXPECT_EQ(results.status().code(), code) << call.name << ": " << results.status();
  EXPECT_NE(std::string(results.status().message()).find(text), std::string::npos)
      << "'" << results.status() << "' does not say '" << text << "'";
}

double epsilonOf(DType type) {
  return type == DType::kF32 ? 0x1p-24 : 0x1p-53;
}

void expectNear(const Tensor& actual, const Reals& expected, const Tolerance& tolerance) {
  ASSERT_EQ(actual.values.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    const double a = actual.values[i];
    const double e = expected[i];
    const bool same = a == e || (std::isnan(a) && std::isnan(e));
    ASSERT_TRUE(same || std::abs(a - e) <= tolerance.relative * std::abs(e) + tolerance.absolute)
        << "element " << i << " of " << expected.size() << ": " << a << ", expected " << e << ", difference " << a - e;
  }
}

void expectSame(const Tensor& actual, const Tensor& expected) {
  EXPECT_EQ(actual.shape, expected.shape);
  EXPECT_EQ(actual.type, expected.type);
  expectNear(actual, expected.values, {0, 0});
}

void forEachIndex(const Ints& shape, const std::function<void(const Ints&)>& visit) {
  Ints index(shape.size(), 0);
  for (int64_t n = elementsOf(shape); n > 0; --n) {
    visit(index);
    for (size_t d = shape.size(); d-- > 0;) {
      if (++index[d] < shape[d]) {
        break;
      }
      index[d] = 0;
    }
  }
}

int64_t positionOf(const Ints& shape, const Ints& index) {
  int64_t position = 0;
  const size_t shift = index.size() - shape.size();
  for (size_t d = 0; d < shape.size(); ++d) {
    position = position * shape[d] + (shape[d] == 1 ? 0 : index[d + shift]);
  }
  return position;
}

Reals numericGradient(const std::function<double(const Reals&)>& f, const Reals& x, double step) {
  Reals gradient(x.size());
  Reals moved = x;
  for (size_t i = 0; i < x.size(); ++i) {
    moved[i] = x[i] + step;
    const double above = f(moved);
    moved[i] = x[i] - step;
    gradient[i] = (above - f(moved)) / (2 * step);
    moved[i] = x[i];
  }
  return gradient;
}

}  // namespace weft::testing
